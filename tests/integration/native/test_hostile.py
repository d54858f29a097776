"""Whatever a peer sends: it gets a clear word and a close, and nobody else notices."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from sealane.delivery.config import LEASE_SECONDS_MAX, Retry, SubscriptionConfig
from sealane.doors.native.attached import CONSUMERS_MAX, IDENTITY_CHARS_MAX
from sealane.doors.native.commands import TRANSACTION_BATCHES_MAX
from sealane.doors.native.consumers import CREDIT_MESSAGES_MAX
from sealane.message import BatchMeta, Limits, encode, from_payloads
from sealane.node.attachment import REASON_CHARS_MAX
from sealane.wire import messages as wire
from sealane.wire.connection import State
from sealane.wire.frames import HEADER_BYTES_MAX, HELLO_BYTES_MAX, frame
from sealane.wire.runs import RUN_OFFSETS_MAX
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import STAMP, Peer, batch_of

pack = msgspec.msgpack.encode


@asynccontextmanager
async def neighbour(running: Running) -> AsyncIterator[None]:
    """Someone who publishes and consumes all the while, and must not be disturbed."""
    async with await Peer.enter(running.address) as peer:
        published = 0

        async def go_on() -> None:
            nonlocal published
            while True:
                answer = await peer.publish("neighbour", b"x")
                assert isinstance(answer, wire.Published), answer
                published += 1

        going = asyncio.create_task(go_on())
        try:
            yield
            before = published
            await eventually(lambda: published > before or going.done())
        finally:
            going.cancel()
            await asyncio.wait([going])
        assert going.cancelled(), going.exception()


def frames(*headers: bytes) -> bytes:
    return b"".join(b"".join(frame(header)) for header in headers)


HELLO = pack(wire.Hello([1], "x"))


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "frame-too-long"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "frame-too-long"),
        (bytes(64), "bad-frame"),
        (b"\xff" * 64, "frame-too-long"),
        (struct.pack("<II", HELLO_BYTES_MAX + 1, 8), "frame-too-long"),
        (struct.pack("<II", 8, 9) + bytes(8), "bad-frame"),
        (frames(b"\xc1"), "bad-message"),
        (frames(pack("hello")), "bad-message"),
        (frames(pack([99, 1])), "bad-message"),
        (frames(pack([1, [1]])), "bad-message"),
        (frames(b"\x91" * 5_000), "bad-message"),
        (frames(b"\x95\x01\x91\x01\xa1x\x90\xcb" + b"\x00" * 8 + b"\x91" * 8_000), "bad-message"),
        (frames(b"\xdd\xff\xff\xff\xff"), "bad-message"),
        (frames(pack(wire.Ping())), "unexpected-message"),
        (frames(pack(wire.Publish(1, "orders"))), "unexpected-message"),
        (frames(HELLO, HELLO), "unexpected-message"),
        (frames(pack(wire.Hello([2, 3], "x"))), "no-common-version"),
        (frames(pack(wire.Hello([], "x"))), "no-common-version"),
    ],
)
async def test_who_cannot_say_hello_is_told_and_cut_off(running: Running, sent: bytes, code: str) -> None:
    async with neighbour(running), await Peer.connect(running.address) as peer:
        peer.wire.state = State.GREETED  # What was sent as bytes is said by this peer all the same.
        peer.send(sent)
        goodbye = (await peer.gone())[-1]
        assert isinstance(goodbye, wire.Goodbye)
        assert goodbye.code == code
        assert goodbye.text
    await eventually(lambda: running.door.connections == 0)


ATTACHED = 1
LEASE = wire.LeaseRuns(0, 77, [0, 1])


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frames(HELLO), "unexpected-message"),
        (frames(pack(wire.Done(1))), "bad-message"),
        (frames(pack(wire.Published(1, []))), "bad-message"),
        (frames(pack(wire.Ping()) + b"x"), "bad-message"),
        (frames(pack(wire.Credit(ATTACHED, -1))), "bad-message"),
        (frames(pack(wire.Credit(ATTACHED, CREDIT_MESSAGES_MAX)), pack(wire.Credit(ATTACHED, 1))), "bad-message"),
        (frames(pack([30, 7, 2, "two", "orders", "workers", ["nonsense"]])), "bad-message"),
        (frames(pack(wire.Settle(ATTACHED, [wire.LeaseRuns(0, 1, [5, 3])]))), "bad-message"),
        (frames(pack(wire.Settle(ATTACHED, [wire.LeaseRuns(0, 1, [3])]))), "bad-message"),
        (frames(pack(wire.Settle(ATTACHED, [wire.LeaseRuns(0, 1, [-3, 3])]))), "bad-message"),
        (frames(pack(wire.Settle(ATTACHED, [wire.LeaseRuns(0, 1, [0, RUN_OFFSETS_MAX + 1])]))), "bad-message"),
        (frames(pack(wire.Release(ATTACHED, [wire.LeaseRuns(0, 1, [0, 1 << 63])]))), "bad-message"),
        (frames(pack(wire.Leave(ATTACHED, [wire.LeaseRuns(0, 1, [0, 2, 1, 3])]))), "bad-message"),
        (frames(pack(wire.Ack(1, ATTACHED, wire.LeaseRuns(0, 1, [2, 1])))), "bad-message"),
        (frames(pack(wire.Redrive(1, "orders", "workers", offsets={0: [2, 1]}))), "bad-message"),
        (frames(pack(wire.ListTopics(5)), pack(wire.ListTopics(5))), "unexpected-message"),
        (frames(pack(wire.ListTopics(-5))), "unexpected-message"),
        (struct.pack("<II", 1 << 30, 8), "frame-too-long"),
        (struct.pack("<II", 1 << 20, HEADER_BYTES_MAX + 1), "bad-frame"),
    ],
)
async def test_who_breaks_the_protocol_later_is_told_and_cut_off(running: Running, sent: bytes, code: str) -> None:
    async with neighbour(running), await Peer.enter(running.address) as peer:
        await peer.attach("orders", consumer=ATTACHED)
        peer.wire.calls.update(range(-10, 10))  # What was sent as bytes is asked by this peer all the same.
        peer.send(sent)
        goodbye = (await peer.gone())[-1]
        assert isinstance(goodbye, wire.Goodbye), goodbye
        assert goodbye.code == code, goodbye
    await eventually(lambda: running.door.connections == running.door.consumers == 0)


NAN, INFINITE = float("nan"), float("inf")


def spoiled_batches() -> list[bytes]:
    batch = from_payloads([b"x"], STAMP, limits=Limits())
    whole = encode(batch)
    only = encode(type(batch)(batch.records, BatchMeta(only="workers")))
    long_producer = encode(type(batch)(batch.records, BatchMeta(producer=bytes(65), sequence=1)))
    return [b"", whole[:-8], whole[:20], b"\xff" * 200, whole + bytes(8), only, long_producer]


@pytest.mark.parametrize("body", spoiled_batches())
async def test_a_batch_that_is_none_is_refused_and_the_connection_goes_on(running: Running, body: bytes) -> None:
    async with await Peer.enter(running.address) as peer:
        refused = await peer.ask(wire.Publish, "orders", body=body)
        assert isinstance(refused, wire.Refused)
        assert refused.code == "invalid-batch"
        assert isinstance(await peer.publish("orders", b"fine"), wire.Published)


@pytest.mark.parametrize("topic", ["", "a b", "_system", "a/b/c", "/", "é", "x" * 129, "x" * 100_000, "..", "a/.."])
async def test_a_topic_that_cannot_be_is_refused(running: Running, topic: str) -> None:
    async with await Peer.enter(running.address) as peer:
        answers = [
            await peer.publish(topic, b"x"),
            await peer.attach(topic),
            await peer.ask(wire.CreateTopic, topic, {}),
        ]
        assert {answer.code for answer in answers} == {"invalid-name"}
        assert running.door.consumers == 0


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        (wire.Ack, (9, LEASE), "closed"),
        (wire.Nack, (9, LEASE), "closed"),
        (wire.Extend, (9, LEASE, 1.0), "closed"),
        (wire.Detach, (9,), "closed"),
        (wire.Ack, (ATTACHED, LEASE), "lease-lost"),
        (wire.Ack, (ATTACHED, wire.LeaseRuns(7, 1, [0, 1])), "closed"),
        (wire.Ack, (ATTACHED, wire.LeaseRuns(-1, 1, [0, 1])), "closed"),
        (wire.Nack, (ATTACHED, LEASE, -1.0), "invalid-argument"),
        (wire.Nack, (ATTACHED, LEASE, NAN), "invalid-argument"),
        (wire.Nack, (ATTACHED, LEASE, 1e300), "invalid-argument"),
        (wire.Nack, (ATTACHED, LEASE, None, "x" * (REASON_CHARS_MAX + 1)), "invalid-argument"),
        (wire.Nack, (ATTACHED, LEASE, None, "x" * REASON_CHARS_MAX), "lease-lost"),
        (wire.Extend, (ATTACHED, LEASE, LEASE_SECONDS_MAX), "lease-lost"),
        (wire.Extend, (ATTACHED, LEASE, LEASE_SECONDS_MAX + 1), "invalid-argument"),
        (wire.Extend, (ATTACHED, LEASE, NAN), "invalid-argument"),
        (wire.Extend, (ATTACHED, LEASE, INFINITE), "invalid-argument"),
        (wire.Extend, (ATTACHED, LEASE, 0.0), "invalid-argument"),
        (wire.CreateTopic, ("t", {"retention_seconds": NAN}), "invalid-argument"),
        (wire.CreateTopic, ("t", {"retention_seconds": INFINITE}), "invalid-argument"),
        (wire.CreateTopic, ("t", {"id_window_seconds": NAN}), "invalid-argument"),
        (wire.CreateTopic, ("t", {"partitions": 1 << 40}), "invalid-argument"),
        (wire.CreateTopic, ("t", {"colour": 1}), "invalid-argument"),
        (wire.ConfigureTopic, ("orders", {"retention_seconds": NAN}), "invalid-argument"),
        (wire.ConfigureTopic, ("orders", {"retention_seconds": [[]]}), "invalid-argument"),
        (wire.ConfigureTopic, ("nowhere", {}), "topic-not-found"),
        (wire.Seek, ("orders", "workers", 1 << 63), "invalid-argument"),
        (wire.Seek, ("orders", "workers", "yesterday"), "invalid-argument"),
        (wire.Seek, ("orders", "workers", {0: -1}), "invalid-argument"),
        (wire.Seek, ("orders", "nobody", "latest"), "subscription-not-found"),
        (wire.Redrive, ("orders", "workers"), "topic-not-found"),
        (wire.Redrive, ("orders", "workers", None, False, NAN), "invalid-argument"),
        (wire.DeclareExchange, ("events", "sideways"), "invalid-argument"),
        (wire.Bind, ("nowhere", "orders", "#"), "exchange-not-found"),
        (wire.Browse, ("orders", 5, 0), "invalid-argument"),
        (wire.Browse, ("orders", -1, 0), "invalid-argument"),
        (wire.Browse, ("orders", 0, -1), "invalid-argument"),
        (wire.Browse, ("orders", 0, 0, 1, 1), "topic-not-found"),
        (wire.DescribeLogs, (["nowhere"],), "topic-not-found"),
        (wire.DescribeLogs, (["a b"],), "topic-not-found"),
        (wire.DescribeLogs, (["a/b/*"],), "invalid-argument"),
        (wire.DescribeLogs, (["a b*"],), "invalid-argument"),
        (wire.DescribeLogs, (["orders"], 1 << 63), "invalid-argument"),
        (wire.Advance, ("nowhere", "workers", {}), "topic-not-found"),
        (wire.Advance, ("orders", "a b", {}), "invalid-name"),
        (wire.Advance, ("orders", "_redrive", {}), "invalid-name"),
        (wire.Advance, ("orders", "workers", {0: 1 << 63}), "invalid-argument"),
        (wire.Advance, ("orders", "workers", {0: -1}), "invalid-argument"),
        (wire.Advance, ("orders", "workers", {1 << 63: 0}), "invalid-argument"),
        (wire.Stage, ("orders",), "invalid-batch"),
        (wire.PublishStaged, ("t", [(b"p" * 16, 1)]), "staged-part-lost"),
        (wire.PublishStaged, ("", []), "invalid-argument"),
        (wire.Transact, ("t", [("orders", -8)], []), "invalid-batch"),
        (wire.Transact, ("t", [("orders", 1 << 40)], []), "invalid-batch"),
        (wire.Transact, ("t", [("orders", 1)] * (TRANSACTION_BATCHES_MAX + 1), []), "limit-exceeded"),
        (wire.Transact, ("", [], []), "invalid-argument"),
    ],
)
async def test_a_request_that_cannot_be_is_refused_by_name(
    running: Running, kind: type[Any], fields: tuple[Any, ...], code: str
) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.attach("orders", consumer=ATTACHED)
        refused = await peer.ask(kind, *fields)
        assert isinstance(refused, wire.Refused), refused
        assert refused.code == code, refused
        assert isinstance(await peer.publish("orders", b"fine"), wire.Published)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (SubscriptionConfig(lease_seconds=NAN), "invalid-argument"),
        (SubscriptionConfig(lease_seconds=LEASE_SECONDS_MAX * 2), "invalid-argument"),
        (SubscriptionConfig(retry=Retry("fixed", 1e300)), "invalid-argument"),
        (SubscriptionConfig(retry=Retry(attempts_max=0)), "invalid-argument"),
        (SubscriptionConfig(filter="payload ="), "filter-error"),
        (SubscriptionConfig(mode="exclusive"), "mode-conflict"),
    ],
)
async def test_a_subscription_that_cannot_be_is_refused(
    running: Running, config: SubscriptionConfig, code: str
) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.attach("orders", consumer=ATTACHED)
        refused = await peer.ask(wire.Attach, 2, "two", "orders", "workers", config)
        assert (type(refused), refused.code) == (wire.Refused, code)
        assert running.door.consumers == 1


async def test_a_number_or_an_identity_that_cannot_be_is_refused(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.attach("orders", consumer=ATTACHED)
        assert (await peer.attach("orders", consumer=ATTACHED, identity="other")).code == "already-exists"
        assert (
            await peer.attach("orders", consumer=2, identity="x" * (IDENTITY_CHARS_MAX + 1))
        ).code == "invalid-argument"
        assert isinstance(await peer.attach("orders", consumer=2, identity="x" * IDENTITY_CHARS_MAX), wire.Attached)
        for number in range(3, CONSUMERS_MAX + 1):
            assert isinstance(await peer.attach("orders", consumer=number), wire.Attached)
        assert (await peer.attach("orders", consumer=CONSUMERS_MAX + 1)).code == "invalid-argument"


async def test_notes_about_consumers_that_are_not_there_are_nothing(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        peer.say(wire.Credit(9, 5))
        peer.say(wire.Settle(9, [LEASE]))
        peer.say(wire.Release(9, [LEASE]))
        peer.say(wire.Leave(9, [LEASE]))
        peer.say(wire.Nack(0, 9, LEASE))
        assert isinstance(await peer.publish("orders", b"fine"), wire.Published)


async def test_a_thousand_requests_at_once_are_all_answered(running: Running) -> None:
    async with neighbour(running), await Peer.enter(running.address) as peer:
        calls = [peer.wire.new_call() for _ in range(3_000)]
        for call in calls:
            peer.say(wire.ListTopics(call))
        for call in calls:
            assert isinstance(await peer.answer(call), list)


async def test_who_comes_in_when_everyone_is_there_is_told_so(no_stray_errors: None) -> None:
    async with (
        running_node(connections_max=2) as running,
        await Peer.enter(running.address) as one,
        await Peer.enter(running.address),
    ):
        async with await Peer.connect(running.address) as third:
            (goodbye,) = await third.gone()
            assert (goodbye.code, running.door.connections_refused) == ("too-many-connections", 1)
        assert isinstance(await one.publish("orders", b"x"), wire.Published)
        await one.close()
        await eventually(lambda: running.door.connections == 1)
        async with await Peer.enter(running.address) as fourth:
            assert isinstance(await fourth.publish("orders", b"x"), wire.Published)


async def test_half_a_frame_and_a_close_is_just_a_close(running: Running) -> None:
    whole = b"".join(frame(pack(wire.Publish(1, "orders")), [batch_of(b"x" * 100_000)]))
    async with neighbour(running):
        for cut in (1, 7, 8, 9, 30, 20_000, len(whole) - 1):
            async with await Peer.enter(running.address) as peer:
                peer.send(whole[:cut])
    await eventually(lambda: running.door.connections == 0)
    assert "default/orders" not in running.node.topics


async def test_a_connection_that_is_lost_with_attaches_in_line_leaves_nothing_behind(running: Running) -> None:
    config = SubscriptionConfig()
    async with neighbour(running):
        for _ in range(5):
            async with await Peer.enter(running.address) as peer:
                for number in range(1, 500):
                    peer.say(wire.Attach(number, number, f"n{number}", "orders", "workers", config, credit=1))
        await eventually(lambda: running.door.connections == 1 and running.door.consumers == 0)
        topic = running.node.topics["default/orders"]
        await eventually(lambda: not topic.attachments)
