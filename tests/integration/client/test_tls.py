"""Lanes by TLS: to a node that is certainly the one that was meant, or to none; each refusal says what to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

import sealane
from sealane.doors.tls import NodeTls
from sealane.errors import UntrustedNode
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal
from tests.certificates import Certified, TestAuthority
from tests.native_node import NativeNode, native_node

DEADLINE_SECONDS = 60.0
OURS = TestAuthority("Ours")
OTHERS = TestAuthority("Others")


@pytest.fixture(autouse=True)
def nobody_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Profiles of whoever runs the tests are not found."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(variable)


@contextlib.asynccontextmanager
async def tls_node(directory: Path, shown: Certified | None = None, **options) -> AsyncIterator[NativeNode]:
    files = (shown or OURS.server()).write(directory, "server")
    async with native_node(tls=NodeTls(*files, OURS.pem), **options) as node:
        yield node


async def refused(url: str, **options) -> sealane.SealaneError:
    """What a lane that cannot be opened is refused with, at once."""
    with pytest.raises(sealane.SealaneError) as error:
        async with asyncio.timeout(DEADLINE_SECONDS), sealane.connect(url, connect_timeout=DEADLINE_SECONDS, **options):
            pass
    return error.value


async def test_messages_of_every_size_go_both_ways_by_tls(tmp_path: Path) -> None:
    payloads = [b"", b"x", bytes(10_000), bytes(100_000), os.urandom(1_000_000)] * 3
    async with tls_node(tmp_path) as node, sealane.connect(node.url, ca=OURS.pem) as lane:
        await lane.publish_many("orders", payloads)
        received: list[bytes] = []
        async for message in lane.consume("orders", "billing"):
            received.append(message.payload)
            await message.ack()
            if len(received) == len(payloads):
                break
        assert received == payloads


def test_tls_works_on_another_event_loop_too(tmp_path: Path) -> None:
    async def converse() -> list[bytes]:
        async with tls_node(tmp_path) as node, sealane.connect(node.url, ca=OURS.pem) as lane:
            await lane.publish_many("orders", [os.urandom(500_000)] * 20)
            await lane.publish("orders", b"small")
            found: list[bytes] = []
            async for batch in lane.consume_batches("orders", "billing"):
                found += batch.payloads()
                await batch.ack(confirm=True)
                if len(found) == 21:
                    return found
        raise AssertionError

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(converse())[-1] == b"small"


async def test_the_name_that_was_written_is_checked_and_not_the_number_behind_it(tmp_path: Path) -> None:
    async with tls_node(tmp_path, OURS.server("localhost")) as node:
        async with sealane.connect(f"sealanes://localhost:{node.port}", ca=OURS.pem) as lane:
            assert await lane.topics() == []
        error = await refused(f"sealanes://127.0.0.1:{node.port}", ca=OURS.pem)
    assert isinstance(error, UntrustedNode)


async def test_a_node_whose_certificate_is_for_other_names_is_refused_with_these_names(tmp_path: Path) -> None:
    async with tls_node(tmp_path, OURS.server("broker.example", "10.0.0.5")) as node:
        error = await refused(node.url, ca=OURS.pem)
    assert isinstance(error, UntrustedNode)
    assert "not for '127.0.0.1', it is for broker.example, 10.0.0.5" in str(error)
    assert "security.certificates.names" in str(error)


async def test_a_node_of_another_authority_is_refused(tmp_path: Path) -> None:
    async with tls_node(tmp_path) as node:
        error = await refused(node.url, ca=OTHERS.pem)
    assert isinstance(error, UntrustedNode)
    assert "not of the given authority" in str(error)
    assert "sealane profile add" in str(error)


async def test_a_node_that_this_machine_does_not_know_is_refused_without_a_ca(tmp_path: Path) -> None:
    async with tls_node(tmp_path) as node:
        error = await refused(node.url)
    assert isinstance(error, UntrustedNode)
    assert "ca=" in str(error)


@pytest.mark.parametrize(("days", "told"), [(-1.0, "has expired"), (1_000.0, "not valid yet")])
async def test_a_node_whose_certificate_is_not_valid_now_is_refused(tmp_path: Path, days: float, told: str) -> None:
    async with tls_node(tmp_path, OURS.server(days=days)) as node:
        error = await refused(node.url, ca=OURS.pem)
    assert isinstance(error, UntrustedNode)
    assert told in str(error)


async def test_a_certificate_that_is_for_clients_makes_no_node(tmp_path: Path) -> None:
    async with tls_node(tmp_path, OURS.issue("node", usage="client", names=("127.0.0.1",))) as node:
        assert isinstance(await refused(node.url, ca=OURS.pem), UntrustedNode)


async def test_tls_to_a_node_that_speaks_plain_text_is_refused_with_what_to_write() -> None:
    async with native_node() as node:
        error = await refused(f"sealanes://127.0.0.1:{node.port}", ca=OURS.pem)
    assert isinstance(error, sealane.InvalidArgument)
    assert "does not speak TLS" in str(error)
    assert "sealane://" in str(error)


async def test_plain_text_to_a_node_that_speaks_tls_is_refused_with_what_to_write(tmp_path: Path) -> None:
    async with tls_node(tmp_path) as node:
        error = await refused(f"sealane://127.0.0.1:{node.port}")
    assert "sealanes://" in str(error)


async def test_a_node_that_closes_without_a_word_may_want_tls() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(sealane.Unavailable, match="sealanes://"):
            async with sealane.connect(f"sealane://127.0.0.1:{port}", connect_timeout=0.5):
                pass
    finally:
        server.close()
        await server.wait_closed()


# --- the client's own certificate -------------------------------------------------------------------------------------


class Visitors:
    """An authenticator that notes whose certificate was shown."""

    def __init__(self) -> None:
        self.certificates: list[bytes | None] = []

    async def __call__(self, shown: Introduction) -> Principal:
        self.certificates.append(shown.certificate)
        return ADMIN


def der(certified: Certified) -> bytes:
    import ssl

    return ssl.PEM_cert_to_DER_cert(certified.certificate)


@pytest.mark.parametrize("as_files", [False, True])
async def test_a_client_shows_its_certificate_from_texts_or_files(tmp_path: Path, as_files: bool) -> None:
    mine, visitors = OURS.issue("anna"), Visitors()
    certificate, key = mine.write(tmp_path, "anna") if as_files else mine
    options: dict[str, Any] = {"ca": OURS.pem, "certificate": certificate, "certificate_key": key}
    async with tls_node(tmp_path, authenticate=visitors) as node, sealane.connect(node.url, **options) as lane:
        await lane.topics()
    assert visitors.certificates == [der(mine)]


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        (OTHERS.issue("anna"), "not of an authority that the node trusts"),
        (OURS.issue("anna", days=-1), "expired on"),
        (OURS.issue("anna", days=1_000), "not valid before"),
        (OURS.issue("anna", usage="server"), "not for clients"),
    ],
    ids=["of another authority", "expired", "not yet valid", "for servers"],
)
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_client_certificate_is_refused_with_the_reason(
    tmp_path: Path, mine: Certified, told: str, loop_factory
) -> None:
    async def come() -> sealane.SealaneError:
        async with tls_node(tmp_path) as node:
            return await refused(node.url, ca=OURS.pem, certificate=mine.certificate, certificate_key=mine.key)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        error = runner.run(come())
    assert isinstance(error, sealane.Unauthenticated)
    assert "does not take this client's certificate" in str(error)
    assert told in str(error)
    assert "PRIVATE" not in str(error)


async def test_a_renewed_certificate_is_shown_from_the_next_connection_on(tmp_path: Path) -> None:
    first, second, visitors = OURS.issue("anna"), OURS.issue("anna"), Visitors()
    certificate, key = first.write(tmp_path, "anna")
    options: dict[str, Any] = {"ca": OURS.pem, "certificate": certificate, "certificate_key": key}
    async with (
        tls_node(tmp_path, authenticate=visitors) as node,
        sealane.connect(node.url, connections=1, **options) as lane,
    ):
        await lane.publish("orders", b"before")
        second.write(tmp_path, "anna")
        for connection in list(node.door._connections):
            connection.abort()
        assert (await lane.publish("orders", b"after")).offset == 1
    assert visitors.certificates == [der(first), der(second)]


async def test_files_that_are_replaced_one_after_the_other_do_not_end_a_lane(tmp_path: Path) -> None:
    first, second, visitors = OURS.issue("anna"), OURS.issue("anna"), Visitors()
    certificate, key = first.write(tmp_path, "anna")
    options: dict[str, Any] = {"ca": OURS.pem, "certificate": certificate, "certificate_key": key}
    async with (
        tls_node(tmp_path, authenticate=visitors) as node,
        sealane.connect(node.url, connections=1, **options) as lane,
    ):
        certificate.write_text(second.certificate)  # Its key comes later.
        for connection in list(node.door._connections):
            connection.abort()
        await lane.publish("orders", b"in between")
    assert visitors.certificates == [der(first), der(first)]


async def test_nothing_is_left_of_a_key_that_was_given_as_text(tmp_path: Path) -> None:
    mine = OURS.issue("anna")
    before = set(os.listdir("/proc/self/fd")), set(os.listdir("/tmp"))
    async with tls_node(tmp_path) as node:
        lane = sealane.connect(node.url, ca=OURS.pem, certificate=mine.certificate, certificate_key=mine.key)
        assert "memfd" not in "".join(_targets())
        async with lane:
            pass
        assert "PRIVATE" not in repr(lane) + repr(vars(lane))
    assert set(os.listdir("/tmp")) - before[1] == set()


def _targets() -> list[str]:
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return found
