"""The door of a node with authentication: an account stands for its clients, or they show certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sealane.node.session import Session
from sealane.security.principals import ADMIN
from tests.frames_node import FramesNode, on_a_thread, secure_frames_node
from tests.integration.frames.plain import Plain
from tests.integration.frames.test_roles import refusal


def administer(node: FramesNode, command: str, **arguments: Any) -> Any:
    return node.do(Session(node.node, ADMIN).administer(command, arguments))


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[FramesNode]:
    with on_a_thread(secure_frames_node(tmp_path, mode="queue", principal="legacy.shop")) as node:
        administer(node, "account.create", name="legacy.shop")
        yield node


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[FramesNode]:
    """With TLS, and nobody to stand for those who show no certificate."""
    with on_a_thread(secure_frames_node(tmp_path, mode="queue", tls=True)) as node:
        yield node


def test_everyone_is_the_account_that_the_settings_name(secure: FramesNode) -> None:
    with Plain.consumer(secure.address) as consumer, Plain.producer(secure.address) as producer:
        producer.send(b"x")
        assert consumer.take(1) == [b"x"]
    assert "shop/frames" in secure.node.topics, "in the domain of that account"


def test_what_the_account_is_not_granted_is_refused(secure: FramesNode) -> None:
    administer(secure, "account.roles", name="legacy.shop", roles=["producer"])
    with Plain.producer(secure.address) as producer, Plain.consumer(secure.address) as consumer:
        producer.send(b"x")
        assert producer.done() is None
        assert "'legacy.shop' may not consume 'shop/frames'" in refusal(consumer)
    administer(secure, "account.roles", name="legacy.shop", roles=["consumer"])
    with Plain.producer(secure.address) as producer, Plain.consumer(secure.address) as consumer:
        assert consumer.take(1) == [b"x"]
        assert "'legacy.shop' may not publish 'shop/frames'" in refusal(producer)


def test_whoever_loses_the_right_to_consume_is_told_at_once(secure: FramesNode) -> None:
    administer(secure, "account.roles", name="legacy.shop", roles=[])
    administer(secure, "grant.add", subject="legacy.shop", action="consume", pattern="shop/*")
    with Plain.consumer(secure.address) as consumer:
        secure.eventually(lambda: secure.consumers("shop/frames") == 1)
        administer(secure, "grant.remove", subject="legacy.shop", action="consume", pattern="shop/*")
        assert "may not consume" in refusal(consumer)


def test_an_account_that_is_missing_or_disabled_lets_nobody_in(secure: FramesNode) -> None:
    with Plain.consumer(secure.address) as consumer:
        secure.eventually(lambda: secure.consumers("shop/frames") == 1)
        administer(secure, "account.disable", name="legacy.shop")
        assert "ERROR: " in refusal(consumer), "whoever was inside is shown out"
    with Plain.producer(secure.address) as producer:
        said = refusal(producer)
    assert "doors.frames.principal names does not exist or is disabled" in said
    assert "legacy" not in said, "nobody is told who it would be"


def test_a_certificate_says_who_someone_is(sealed: FramesNode) -> None:
    assert sealed.secure is not None
    anna = sealed.do(sealed.secure.issue("anna.example.com"))
    tls = sealed.secure.context(anna)
    with Plain.consumer(sealed.address, tls=tls) as consumer, Plain.producer(sealed.address, tls=tls) as producer:
        producer.send(*[b"x" * 1_000] * 1_000)
        assert consumer.take(1_000) == [b"x" * 1_000] * 1_000
    assert "example.com/frames" in sealed.node.topics


def test_what_came_by_tls_is_stored_also_of_who_closes_at_once(sealed: FramesNode) -> None:
    assert sealed.secure is not None
    tls = sealed.secure.context(sealed.do(sealed.secure.issue("anna.example.com")))
    with Plain.producer(sealed.address, tls=tls) as producer:
        producer.send(*[b"x" * 1_000] * 1_000)
    sealed.eventually(lambda: sealed.stored("example.com/frames") == 1_000)


def test_without_a_certificate_and_without_an_account_nobody_comes_in(sealed: FramesNode) -> None:
    assert sealed.secure is not None
    with Plain.producer(sealed.address, tls=sealed.secure.context()) as producer:
        assert "no credential was shown" in refusal(producer)


def test_an_account_may_stand_for_those_who_come_by_tls_without_a_certificate(tmp_path: Path) -> None:
    with on_a_thread(secure_frames_node(tmp_path, mode="queue", tls=True, principal="legacy")) as node:
        administer(node, "account.create", name="legacy")
        assert node.secure is not None
        with Plain.producer(node.address, tls=node.secure.context()) as producer:
            producer.send(b"x")
            node.wait_stored(1)


def test_plain_text_is_told_that_this_door_speaks_tls(sealed: FramesNode) -> None:
    with Plain.producer(sealed.address) as producer:
        assert "this door speaks TLS" in refusal(producer)


def test_nothing_of_a_certificate_is_asked_where_there_is_no_tls(secure: FramesNode) -> None:
    with Plain(secure.address) as opened:
        opened.socket.sendall(b"\x16\x03\x01\x00\x05hello")
        assert "first frame must be PRODUCER or CONSUMER" in refusal(opened)
