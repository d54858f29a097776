"""Valid conversations of a client with a node, and ways to spoil them."""

from __future__ import annotations

import random
from typing import Any, get_args

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.message import BatchMeta, Limits, Stamp, encode, from_payloads
from sealane.wire import messages as wire
from sealane.wire.connection import Connection, State
from sealane.wire.errors import ProtocolError
from sealane.wire.frames import frame, new_scratch
from tests.fuzz.mutation import SEEDS, mutate

PART = bytes(range(16))
STAGED = encode(
    from_payloads([b"x"], Stamp(1, bytes(16)), limits=Limits()).with_meta(BatchMeta(producer=PART, sequence=0))
)
LEASE = wire.LeaseRuns(0, 1, [0, 5, 7, 9])
FRAME_BYTES_MAX = 1 << 20
_SCRATCH = new_scratch()
_pack = msgspec.msgpack.encode

HELLO = b"".join(frame(_pack(wire.Hello([1], "fuzz/1", heartbeat_seconds=5.0))))


def _said(message: Any, *body: bytes) -> bytes:
    return b"".join(frame(_pack(message), body))


CONVERSATION: tuple[bytes, ...] = (
    _said(wire.Ping()),
    _said(wire.Publish(1, "orders"), SEEDS[0]),
    _said(wire.Publish(2, "orders"), SEEDS[2]),
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
    _said(wire.PublishTo(16, "events", "a.b"), SEEDS[1]),
    _said(wire.ListExchanges(17)),
    _said(wire.Transact(18, "t", [("orders", len(SEEDS[0])), ("more", len(SEEDS[1]))], []), SEEDS[0], SEEDS[1]),
    _said(wire.Browse(19, "orders", 0, 0, 4096)),
    _said(wire.Browse(25, "orders", 0, 0, 4096, None, 3, True)),
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


def spoiled(choose: random.Random) -> bytes:
    """Some of a conversation, in any order, with one or two of its messages changed a little."""
    said = [choose.choice(CONVERSATION) for _ in range(choose.randrange(1, 12))]
    if choose.random() < 0.5:
        said = list(CONVERSATION[: choose.randrange(2, len(CONVERSATION))])
    for _ in range(choose.choice((1, 1, 2))):
        place = choose.randrange(len(said))
        if choose.random() < 0.6 and said[place] in CONVERSATION:
            said[place] = _changed(said[place], choose)
        else:
            said[place] = mutate(said[place], choose)
    return b"".join(said)


def _changed(whole: bytes, choose: random.Random) -> bytes:
    """The same frame with another value somewhere in its header: it gets past the framing, and further in."""
    header_length = int.from_bytes(whole[4:8], "little")
    fields = msgspec.msgpack.decode(whole[8 : 8 + header_length])
    body = whole[8 + header_length + -header_length % 8 :]
    _change(fields, choose)
    return b"".join(frame(_pack(fields), [body] if body else []))


def _change(fields: list[Any], choose: random.Random) -> None:
    place = choose.randrange(1, len(fields)) if len(fields) > 1 else 0
    value = fields[place]
    if isinstance(value, list) and value and choose.random() < 0.7:
        _change(value if len(value) > 1 else [0, value], choose)
    elif isinstance(value, dict) and value and choose.random() < 0.7:
        value[choose.choice(list(value))] = choose.choice(VALUES)
    elif isinstance(value, int) and choose.random() < 0.5:
        fields[place] = choose.choice((value + 1, value - 1, -value, 0, 2**31, 2**63 - 1, 2**63, 2**64 - 1))
    else:
        fields[place] = choose.choice(VALUES)


VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 2**63, 2**64 - 1, -(2**63), 0.0, -1.0, 1e300, float("nan"), float("inf")),
    *("", "x", "_system", "a/b", "x" * 300, "\x00", b"", b"\xff", [], {}, [[]], {"a": {}}, [0, 1], [5, 3], [0, 2**40]),
)


def check_wire(data: bytes) -> int:
    """Let a node's side hear it, in one piece. Returns how many messages were understood."""
    node = Connection("node", _SCRATCH, 0.0)
    node.state = State.OPEN
    node._reader.frame_bytes_max = FRAME_BYTES_MAX
    understood = 0
    try:
        while data:
            buffer = node.get_buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            for message, _ in node.received(count, 0.0):
                understood += 1
                assert type(message) in EVERYTHING
            data = data[count:]
    except ProtocolError as error:
        node.farewell(error, 0.0)  # There is always a last word to say.
    return understood


EVERYTHING = frozenset(get_args(wire.ToNode))
