"""Valid conversations of a client with a node over the native protocol, and ways to spoil them."""

from __future__ import annotations

import random
import struct
from typing import Any

import msgspec
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import Acked, Sought, Subscribed, encode_events
from sealane.delivery.history import history_rows
from sealane.delivery.offsets import pack
from sealane.errors import InvalidName, TopicNotFound
from sealane.message import BatchMeta, Limits, Stamp, encode, from_payloads
from sealane.node.history import History
from sealane.wire import messages as wire
from sealane.wire.faults import fault_of
from sealane.wire.frames import PREFIX, frame
from tests.fuzz.mutation import mutate
from tests.fuzz.targets.batch import SEEDS as BATCHES
from tests.fuzz.trees import VALUES, changed

PART = bytes(range(16))
STAGED = encode(
    from_payloads([b"x"], Stamp(1, bytes(16)), limits=Limits()).with_meta(BatchMeta(producer=PART, sequence=0))
)
LEASE = wire.LeaseRuns(0, 1, [0, 5, 7, 9])
HEADER_VALUES: tuple[Any, ...] = (*VALUES, float("nan"), float("inf"), b"", b"\xff", {0: 1})
_pack = msgspec.msgpack.encode

HELLO = b"".join(frame(_pack(wire.Hello([1], "fuzz/1", heartbeat_seconds=5.0))))


def _said(message: Any, *body: bytes) -> bytes:
    return b"".join(frame(_pack(message), body))


CONVERSATION: tuple[bytes, ...] = (
    _said(wire.Ping()),
    _said(wire.Publish(1, "orders"), BATCHES[0]),
    _said(wire.Publish(2, "orders"), BATCHES[2]),
    _said(wire.Attach(3, 1, "me", "orders", "workers", SubscriptionConfig(), {0: 2}, False, 10)),
    _said(wire.Attach(4, 2, "you", "orders", "all", SubscriptionConfig(mode="broadcast"), 1_000_000, False, 10)),
    _said(wire.Credit(1, 10)),
    _said(wire.Settle(1, [LEASE])),
    _said(wire.Ack(5, 1, LEASE)),
    _said(wire.Nack(6, 1, LEASE, 0.5, "why")),
    _said(wire.Extend(7, 1, LEASE, 30.0)),
    _said(wire.Release(1, [LEASE])),
    _said(wire.Leave(2, [LEASE])),
    _said(wire.Detach(8, 2, True)),
    _said(wire.CreateTopic(9, "orders", {"partitions": 2, "retention_seconds": 60.0})),
    _said(wire.ConfigureTopic(10, "orders", {"messages_max": 10, "when_full": "drop-oldest"})),
    _said(wire.ListTopics(11)),
    _said(wire.DescribeTopic(12, "orders")),
    _said(wire.Seek(13, "orders", "workers", {0: 1})),
    _said(wire.DeclareExchange(14, "events", "topic")),
    _said(wire.Bind(15, "events", "orders", "a.#")),
    _said(wire.PublishTo(16, "events", "a.b"), BATCHES[1]),
    _said(wire.ListExchanges(17)),
    _said(wire.Transact(18, "t", [("orders", len(BATCHES[0])), ("more", len(BATCHES[1]))], []), *BATCHES[:2]),
    _said(wire.Browse(19, "orders", 0, 0, 4096)),
    _said(wire.Browse(25, "orders", 0, 0, 4096, None, 3, True)),
    _said(wire.ReadHistory(31, "orders", 0, 0, 4096, None, 9)),
    _said(wire.Administer(32, "account.list", {"name": "x"})),
    _said(wire.DescribeLogs(26, ["orders", "o*", "*/*"], 1_000_000)),
    _said(wire.Advance(27, "orders", "workers", {0: 1})),
    _said(wire.Stage(28, "orders"), STAGED),
    _said(wire.PublishStaged(29, "writer", [(PART, 1)], 7)),
    _said(wire.DropStaged(30, [PART])),
    _said(wire.Redrive(20, "orders", "workers", "a = 1", True, 5.0, 10)),
    _said(wire.Unbind(21, "events", "orders", "a.#")),
    _said(wire.Unsubscribe(22, "orders", "workers")),
    _said(wire.Status(23)),
    _said(wire.Goodbye("draining", "soon")),
    _said(wire.DeleteTopic(24, "orders")),
)
"""What a client can say: a message each."""

_CAUSED = TopicNotFound("orders")
_CAUSED.__cause__ = InvalidName("topic", "o/r/d", "it has two slashes")
_HISTORY = History(
    3,
    history_rows(
        [
            (1, encode_events([Subscribed("s", SubscriptionConfig(), 0)])),
            (2, encode_events([Acked("s", 1, pack(BitMap64([0, 1, 5])), 7), Sought("s", 0, 8)])),
        ]
    ),
).to_stream()
_PLACED = wire.PlacedShare(0, 7, 2, struct.pack("<2q", 7, 9), struct.pack("<2I", 0, 1))

ANSWERS: tuple[bytes, ...] = (
    _said(wire.Pong()),
    _said(wire.Done(1)),
    _said(wire.Answer(2, msgspec.Raw(_pack({"a": [1]})))),
    _said(wire.Refused(3, *fault_of(_CAUSED))),
    _said(wire.Published(4, [wire.PlacedShare(0, 5, 5)])),
    _said(wire.Published(5, [_PLACED, wire.PlacedShare(1, 0, 3, None, struct.pack("<3I", 2, 3, 4))])),
    _said(wire.Routed(6, {"orders": [_PLACED]})),
    _said(wire.Attached(7, {0: 3})),
    _said(wire.Deliver(1, "orders", 0, 9, 10**15, [(0, 5, len(BATCHES[0]), None)], [([0, 2], 2)]), BATCHES[0]),
    _said(
        wire.Deliver(1, "orders", 0, 9, 10**15, [(3, 1, len(BATCHES[1]), struct.pack("<q", 3))], []),
        BATCHES[1],
    ),
    _said(wire.Browsed(8, [(0, 5, len(BATCHES[0]), None), (5, 1, len(BATCHES[1]), None)]), *BATCHES[:2]),
    _said(wire.HistoryRead(10, 3), _HISTORY),
    _said(wire.Revoke(1, 0, 9, [0, 2])),
    _said(wire.Ended(1, "topic-not-found", "it is gone", {"name": "orders"})),
    _said(wire.Progress(9, 5, 10)),
    _said(wire.Goodbye("draining", "soon", {"a": 1})),
)
"""What a node can say: a message each."""


def spoiled(choose: random.Random) -> bytes:
    """Some of a client's conversation, in any order, with one or two of its messages changed a little."""
    said = [choose.choice(CONVERSATION) for _ in range(choose.randrange(1, 12))]
    if choose.random() < 0.5:
        said = list(CONVERSATION[: choose.randrange(2, len(CONVERSATION))])
    for _ in range(choose.choice((1, 1, 2))):
        place = choose.randrange(len(said))
        said[place] = spoiled_frames(said[place], choose)
    return b"".join(said)


def spoiled_frames(data: bytes, choose: random.Random) -> bytes:
    """The same frames with another value somewhere in the header of one: it gets past the framing, and further in."""
    frames = list(_cut(data))
    if not frames or choose.random() < 0.35:
        return mutate(data, choose)
    place = choose.randrange(len(frames))
    frames[place] = _changed(frames[place], choose)
    if choose.random() < 0.1:
        frames.insert(place, choose.choice(frames))
    return b"".join(frames)


def _cut(data: bytes) -> Any:
    """The whole frames at the beginning, as their prefixes say."""
    while len(data) >= PREFIX.size:
        stop = PREFIX.size + PREFIX.unpack_from(data)[0]
        if stop > len(data):
            return
        yield data[:stop]
        data = data[stop:]


def _changed(whole: bytes, choose: random.Random) -> bytes:
    header_length = int.from_bytes(whole[4:8], "little")
    body = whole[8 + header_length + -header_length % 8 :]
    try:
        fields = changed(msgspec.msgpack.decode(whole[8 : 8 + header_length]), choose, HEADER_VALUES)
        header = _pack(fields)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return mutate(whole, choose)  # It is spoiled already.
    if body and choose.random() < 0.2:
        body = mutate(body, choose)
    return b"".join(frame(header, [body] if body else []))
