"""Clients with an API key over a real native door: what they sign, and what is refused."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import sealane
from sealane.client.remote.credentials import ApiKey
from sealane.message import BatchMeta, Limits, encode, from_payloads
from sealane.node.session import Session
from sealane.node.surroundings import of_this_machine
from sealane.security.principals import ADMIN
from sealane.wire import messages as wire
from sealane.wire.signing import Signer
from tests.integration.native.conftest import eventually
from tests.integration.native.peer import STAMP, Peer, batch_of
from tests.native_node import NativeNode, native_node

BATCH = batch_of(b"one")
STAGED = from_payloads([b"one"], STAMP, limits=Limits()).with_meta(BatchMeta(producer=bytes(16), sequence=0))
SURROUNDINGS = of_this_machine()


@pytest.fixture
async def node() -> AsyncIterator[NativeNode]:
    async with native_node(authenticate=None) as running:
        yield running


@pytest.fixture
async def key(node: NativeNode) -> str:
    _, text = await node.node.identity.api_keys.create("billing")
    return text


async def entered(node: NativeNode, key: str) -> tuple[Peer, Signer]:
    """A peer that was welcomed by this key, and what signs for it."""
    shown = ApiKey(key, SURROUNDINGS.clock, SURROUNDINGS.entropy).show()
    peer = await Peer.connect(node.door.address)
    peer.say(wire.Hello([1], "peer", credentials=shown.credentials))
    signer = shown.signer(await peer.hear(wire.Welcome))
    assert signer is not None
    return peer, signer


def say_signed(peer: Peer, signer: Signer, request: Any, *body: bytes) -> None:
    signer.sign(request, body)
    peer.say(request, *body)


async def expect_cut_off(peer: Peer, problem: str) -> None:
    refused = await peer.hear(wire.Refused)
    assert refused.code == "bad-signature"
    assert problem in refused.text
    assert (await peer.hear(wire.Goodbye)).code == "bad-signature"
    await peer.close()


async def stored(node: NativeNode, topic: str = "default/orders") -> int:
    found = node.node.topics.get(topic)
    if found is None:
        return 0
    description = await Session(node.node, ADMIN).describe_topic(topic)
    return sum(each.end - each.start for each in description.partitions)


# --- what is signed is taken ----------------------------------------------------------------------------------------


async def test_everything_that_carries_batches_is_signed_by_a_lane_and_taken(node: NativeNode, key: str) -> None:
    await node.node.identity.accounts.change("billing", roles={"member", "manager"})
    async with sealane.connect(node.url, key=key) as lane:
        await lane.publish_many("orders", [b"x" * 100] * 500)
        await asyncio.gather(*(lane.publish("orders", b"x") for _ in range(100)))
        async with lane.producer("orders") as producer:
            for _ in range(100):
                await producer.send(b"y")
        await lane.declare_exchange("events", "direct")
        await lane.bind("events", "orders", "a")
        await lane.publish_to("events", "a", b"z")
        async with lane.transaction("t1") as transaction:
            await transaction.publish("orders", b"t")
        await lane.publish("orders", b"x" * 900_000)
        await lane.stage("orders", STAGED)
        assert await lane.publish_staged("t2", [(bytes(16), 1)])
    assert await stored(node) == 500 + 100 + 100 + 1 + 1 + 1 + 1


async def test_a_request_that_is_too_large_to_send_leaves_no_gap_behind_it(node: NativeNode, key: str) -> None:
    async with sealane.connect(node.url, key=key) as lane:
        await lane.publish("orders", b"before")
        with pytest.raises(sealane.SealaneError):
            await _publish_beyond_a_frame(lane)
        await lane.publish("orders", b"after")
    assert await stored(node) == 2


async def _publish_beyond_a_frame(lane: sealane.Lane) -> None:
    names = [f"{'n' * 120}{number}" for number in range(3_000)]
    async with lane.transaction("large") as transaction:
        for name in names:
            await transaction.publish(name[:128], b"x")


async def test_after_a_lost_connection_signatures_begin_anew(node: NativeNode, key: str) -> None:
    async with sealane.connect(node.url, key=key) as lane:
        await lane.publish("orders", b"one")
        for connection in list(node.door._connections):
            connection.abort()
        await lane.publish("orders", b"two")
    assert await stored(node) == 2


async def test_others_than_clients_with_a_key_get_no_nonce_and_sign_nothing() -> None:
    async with native_node() as node, await Peer.connect(node.door.address) as peer:
        peer.say(wire.Hello([1], "peer"))
        assert (await peer.hear(wire.Welcome)).nonce == b""
        peer.say(wire.Publish(1, "orders"), BATCH)
        await peer.hear(wire.Published)


async def test_a_key_that_is_shown_whole_signs_too(node: NativeNode, key: str) -> None:
    async with await Peer.connect(node.door.address) as peer:
        peer.say(wire.Hello([1], "peer", credentials={"key": key}))
        assert len((await peer.hear(wire.Welcome)).nonce) == 16
        peer.say(wire.Publish(1, "orders"), BATCH)
        await expect_cut_off(peer, "it has none")


# --- what is not, is refused ----------------------------------------------------------------------------------------


async def test_an_unsigned_publish_is_refused_and_ends_the_connection(node: NativeNode, key: str) -> None:
    peer, _ = await entered(node, key)
    peer.say(wire.Publish(1, "orders"), BATCH)
    await expect_cut_off(peer, "it has none")
    assert await stored(node) == 0


@pytest.mark.parametrize("place", [0, 31])
async def test_a_tampered_signature_is_refused(node: NativeNode, key: str, place: int) -> None:
    peer, signer = await entered(node, key)
    request = wire.Publish(1, "orders")
    signer.sign(request, (BATCH,))
    changed = bytearray(request.signature)
    changed[place] ^= 1
    request.signature = bytes(changed)
    peer.say(request, BATCH)
    await expect_cut_off(peer, "it does not match")
    assert await stored(node) == 0


async def test_an_unsigned_stage_is_refused_and_ends_the_connection(node: NativeNode, key: str) -> None:
    peer, _ = await entered(node, key)
    peer.say(wire.Stage(1, "orders"), encode(STAGED))
    await expect_cut_off(peer, "it has none")


async def test_a_tampered_batch_is_refused(node: NativeNode, key: str) -> None:
    peer, signer = await entered(node, key)
    request = wire.Publish(1, "orders")
    signer.sign(request, (BATCH,))
    peer.say(request, batch_of(b"two"))
    await expect_cut_off(peer, "it does not match")
    assert await stored(node) == 0


REQUESTS = [
    (wire.Publish(1, "orders"), {"topic": "other"}),
    (wire.Publish(1, "orders"), {"after": 7}),
    (wire.PublishTo(1, "events", "a"), {"exchange": "other"}),
    (wire.PublishTo(1, "events", "a"), {"routing_key": "b"}),
    (wire.Stage(1, "orders"), {"topic": "other"}),
    (wire.Transact(1, "t", [("orders", len(BATCH))], []), {"transaction": "u"}),
    (wire.Transact(1, "t", [("orders", len(BATCH))], []), {"publishes": [("other", len(BATCH))]}),
    (wire.Transact(1, "t", [("orders", len(BATCH))], []), {"acks": [("me", wire.LeaseRuns(0, 1))]}),
]


@pytest.mark.parametrize(("request_", "change"), REQUESTS, ids=lambda each: str(each)[:40])
async def test_a_changed_target_is_refused(node: NativeNode, key: str, request_: Any, change: dict[str, Any]) -> None:
    peer, signer = await entered(node, key)
    signer.sign(request_, (BATCH,))
    for name, value in change.items():
        setattr(request_, name, value)
    peer.say(request_, BATCH)
    await expect_cut_off(peer, "it does not match")


async def test_a_repeated_publish_is_refused(node: NativeNode, key: str) -> None:
    peer, signer = await entered(node, key)
    request = wire.Publish(1, "orders")
    say_signed(peer, signer, request, BATCH)
    await peer.hear(wire.Published)
    peer.say(request, BATCH)
    await expect_cut_off(peer, "it was repeated")
    assert await stored(node) == 1


async def test_publishes_in_another_order_are_refused(node: NativeNode, key: str) -> None:
    peer, signer = await entered(node, key)
    first, second = wire.Publish(1, "orders"), wire.Publish(2, "orders")
    for request in (first, second):
        signer.sign(request, (BATCH,))
    peer.say(second, BATCH)
    await expect_cut_off(peer, "some before it are missing")
    assert await stored(node) == 0


async def test_a_publish_of_another_connection_of_the_same_key_is_refused(node: NativeNode, key: str) -> None:
    one, signer = await entered(node, key)
    other, _ = await entered(node, key)
    request = wire.Publish(1, "orders")
    signer.sign(request, (BATCH,))
    other.say(request, BATCH)
    await expect_cut_off(other, "it does not match")
    await one.close()


async def test_what_follows_a_bad_signature_is_not_heard(node: NativeNode, key: str) -> None:
    peer, signer = await entered(node, key)
    good = wire.Publish(2, "orders")
    signer.sign(good, (BATCH,))
    peer.say(wire.Publish(1, "orders"), BATCH)
    peer.say(good, BATCH)
    await expect_cut_off(peer, "it has none")
    assert await stored(node) == 0


# --- logging in -----------------------------------------------------------------------------------------------------


async def refused_hello(node: NativeNode, credentials: Any) -> str:
    async with await Peer.connect(node.door.address) as peer:
        peer.say(wire.Hello([1], "peer", credentials=credentials))
        goodbye = await peer.hear(wire.Goodbye)
        assert goodbye.code == "unauthenticated"
        return goodbye.text


async def test_a_replayed_login_is_refused(node: NativeNode, key: str) -> None:
    shown = ApiKey(key, SURROUNDINGS.clock, SURROUNDINGS.entropy).show()
    async with await Peer.enter(node.door.address, credentials=shown.credentials):
        assert "used before" in await refused_hello(node, shown.credentials)


async def test_a_client_without_credentials_is_told_which_there_are(node: NativeNode) -> None:
    told = await refused_hello(node, None)
    assert "key, token, user" in told
    assert "certificate" in told


async def test_a_lane_with_a_wrong_key_gets_a_typed_error(node: NativeNode, key: str) -> None:
    wrong = key[:-4] + ("AAAA" if not key.endswith("AAAA") else "BBBA")
    with pytest.raises(sealane.Unauthenticated, match="not valid here"):
        async with sealane.connect(node.url, key=wrong):
            pass


async def test_a_revoked_key_is_cut_off_while_it_is_inside(node: NativeNode, key: str) -> None:
    peer, _ = await entered(node, key)
    began = time.monotonic()
    await Session(node.node, ADMIN).administer("key.revoke", {"id": key.split("_")[1]})
    assert (await peer.hear(wire.Goodbye)).code == "unauthenticated"
    assert time.monotonic() - began < 5
    await peer.close()
    assert "not valid here" in await refused_hello(
        node, ApiKey(key, SURROUNDINGS.clock, SURROUNDINGS.entropy).show().credentials
    )
    await eventually(lambda: len(node.node.entrances) == 0)


async def test_an_expired_key_is_cut_off_while_it_is_inside(node: NativeNode) -> None:
    soon = node.node.surroundings.clock() + 300_000
    _, text = await node.node.identity.api_keys.create("billing", expires_us=soon)
    peer, _ = await entered(node, text)
    assert (await peer.hear(wire.Goodbye)).code == "unauthenticated"
    await peer.close()


async def test_users_and_tokens_come_in_by_the_same_door(node: NativeNode) -> None:
    await node.node.identity.users.create("anna", "correct horse")
    async with sealane.connect(node.url, user="anna", password="correct horse") as lane:
        await lane.publish("orders", b"x")
        issued = await lane.administer("token.issue")
    async with sealane.connect(node.url, token=issued["token"]) as lane:
        await lane.publish("orders", b"x")
    with pytest.raises(sealane.Unauthenticated):
        async with sealane.connect(node.url, user="anna", password="wrong password"):
            pass
    assert await stored(node) == 2


async def test_no_secret_is_in_a_log_or_an_error(node: NativeNode, key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret, password = key.split("_", 2)[2], "canary horse"
    await node.node.identity.users.create("anna", password)
    told: list[str] = []
    for options in (
        {"key": key},
        {"key": key[:-4] + "AAAA"},
        {"user": "anna", "password": password},
        {"user": "bert", "password": password},
        {"token": "canary.canary.canary"},
    ):
        try:
            async with sealane.connect(node.url, **options) as lane:  # type: ignore[arg-type]
                await lane.publish("orders", b"x")
        except sealane.SealaneError as error:
            told.append(f"{error!r} {error} {vars(error)}")
    peer, signer = await entered(node, key)
    told.append(repr(signer))
    peer.say(wire.Publish(1, "orders"), BATCH)
    await expect_cut_off(peer, "it has none")
    assert len(told) == 4
    for canary in (secret[:-4], "canary"):
        assert canary not in "\n".join(told)
        assert canary not in caplog.text


async def test_a_narrowed_key_may_do_no_more_than_it_says(node: NativeNode) -> None:
    _, text = await node.node.identity.api_keys.create("etl", allows=[("publish", "~/orders*")])
    async with sealane.connect(node.url, key=text) as lane:
        await lane.publish("orders-eu", b"x")
        with pytest.raises(sealane.Forbidden):
            await lane.publish("invoices", b"x")
        with pytest.raises(sealane.Forbidden):
            await lane.describe_topic("orders-eu")
