"""The protocol's state machine: who may say what, when."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from sealane.delivery.config import SubscriptionConfig
from sealane.message import Limits
from sealane.wire import messages as wire
from sealane.wire.connection import (
    CALLS_OPEN_MAX,
    FRAME_SECONDS_MAX,
    HANDSHAKE_SECONDS_MAX,
    SILENT_HEARTBEATS_MAX,
    Connection,
    State,
)
from sealane.wire.errors import ProtocolError
from sealane.wire.frames import frame, new_scratch

SCRATCH = new_scratch()
LEASE = wire.LeaseRuns(0, 1, [0, 5])
WELCOME = wire.Welcome(
    1, "node/1", "n", "admin", "default", [], wire.LimitsOffer.of(Limits()), 1 << 24, 15.0, b"n" * 16
)
EXAMPLES: dict[type, Any] = {
    wire.Hello: wire.Hello([1], "client/1"),
    wire.Welcome: WELCOME,
    wire.Ping: wire.Ping(),
    wire.Pong: wire.Pong(),
    wire.Goodbye: wire.Goodbye("closed", "done"),
    wire.Done: wire.Done(1),
    wire.Answer: wire.Answer(1, msgspec.Raw(b"\xc0")),
    wire.Refused: wire.Refused(1, "topic-not-found", "no", {"name": "x", "n": 1}),
    wire.Progress: wire.Progress(1, 5, 10),
    wire.Publish: wire.Publish(1, "orders", 7, 3, b"s" * 32),
    wire.Published: wire.Published(1, [wire.PlacedShare(0, 5, 3, b"x" * 24, b"y" * 12)]),
    wire.PublishTo: wire.PublishTo(1, "events", "a.b", 3, b"s" * 32, 2),
    wire.Routed: wire.Routed(1, {"default/a": [wire.PlacedShare(0, 5, 3)]}),
    wire.Transact: wire.Transact(1, "t", [("orders", 128)], [("me", LEASE)], 3, b"s" * 32),
    wire.Stage: wire.Stage(1, "orders", 3, b"s" * 32),
    wire.PublishStaged: wire.PublishStaged(1, "query", [(b"p" * 16, 2)], 7),
    wire.DropStaged: wire.DropStaged(1, [b"p" * 16]),
    wire.Attach: wire.Attach(1, 7, "me", "orders", "workers", SubscriptionConfig(mode="broadcast"), {0: 5}, True, 9),
    wire.Attached: wire.Attached(1, {0: 5, 1: 9}),
    wire.Credit: wire.Credit(7, 100),
    wire.Deliver: wire.Deliver(7, "default/orders", 0, 9, 123, [(0, 3, 256, None)], [([0, 2], 3)]),
    wire.Revoke: wire.Revoke(7, 0, 9, [0, 2]),
    wire.Ended: wire.Ended(7, "closed", "it was", {}),
    wire.Settle: wire.Settle(7, [LEASE, wire.LeaseRuns(0, 2)]),
    wire.Ack: wire.Ack(1, 7, LEASE),
    wire.Nack: wire.Nack(1, 7, LEASE, 1.5, "why"),
    wire.Extend: wire.Extend(1, 7, LEASE, 30.0),
    wire.Release: wire.Release(7, [LEASE]),
    wire.Leave: wire.Leave(7, [LEASE]),
    wire.Detach: wire.Detach(1, 7, True),
    wire.CreateTopic: wire.CreateTopic(1, "orders", {"partitions": 4}),
    wire.ConfigureTopic: wire.ConfigureTopic(1, "orders", {"retention_seconds": 5.0}),
    wire.DeleteTopic: wire.DeleteTopic(1, "orders"),
    wire.ListTopics: wire.ListTopics(1),
    wire.DescribeTopic: wire.DescribeTopic(1, "orders"),
    wire.Unsubscribe: wire.Unsubscribe(1, "orders", "workers"),
    wire.Seek: wire.Seek(1, "orders", "workers", "latest"),
    wire.Redrive: wire.Redrive(1, "orders", "workers", "x = 1", True, 5.0, 10, {0: [3, 5, 7, 9]}),
    wire.Advance: wire.Advance(1, "orders", "spark", {0: 5, 1: 9}),
    wire.DeclareExchange: wire.DeclareExchange(1, "events", "topic"),
    wire.Bind: wire.Bind(1, "events", "orders", "#"),
    wire.Unbind: wire.Unbind(1, "events", "orders", "#"),
    wire.ListExchanges: wire.ListExchanges(1),
    wire.Browse: wire.Browse(1, "orders", 0, 5, 1 << 20, 3, 99, True),
    wire.Browsed: wire.Browsed(1, [(0, 3, 256, None)]),
    wire.ReadHistory: wire.ReadHistory(1, "orders", 0, 5, 1 << 18, 3, 99),
    wire.HistoryRead: wire.HistoryRead(1, 17),
    wire.DescribeLogs: wire.DescribeLogs(1, ["orders", "shop/*"], 123),
    wire.Status: wire.Status(1),
    wire.Backup: wire.Backup(1, "/backup"),
    wire.Administer: wire.Administer(1, "grant.add", {"subject": "billing"}),
}
REQUESTS, REPLIES = set(get_args(wire.Request)), set(get_args(wire.Reply))
TO_NODE, TO_CLIENT = set(get_args(wire.ToNode)), set(get_args(wire.ToClient))


def heard(listener: Connection, pieces: list[Any], now: float = 0.0) -> list[Any]:
    data = b"".join(bytes(piece) for piece in pieces)
    found: list[Any] = []
    while data:
        buffer = listener.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        found += [message for message, _ in listener.received(count, now)]
        data = data[count:]
    return found


def spoken(message: Any) -> list[Any]:
    """The frame of a message, whoever says it and whenever."""
    mouth = Connection("client" if type(message) in TO_NODE else "node", SCRATCH, 0.0)
    mouth.state = State.GREETED if type(message) is wire.Welcome else State.OPEN
    mouth.state = State.GREETING if type(message) is wire.Hello else mouth.state
    return mouth.say(message, now=0.0)


def in_state(role: Any, state: State) -> Connection:
    connection = Connection(role, SCRATCH, 0.0)
    connection.state = state
    connection.calls.add(1) if role == "client" else None
    return connection


def opened() -> tuple[Connection, Connection]:
    client, node = Connection("client", SCRATCH, 0.0), Connection("node", SCRATCH, 0.0)
    heard(node, client.say(wire.Hello([1], "client/1"), now=0.0))
    heard(client, node.say(WELCOME, now=0.0))
    return client, node


def test_there_is_an_example_of_everything_that_can_be_said() -> None:
    assert set(EXAMPLES) == TO_NODE | TO_CLIENT
    assert set(get_args(wire.AnyMessage)) == TO_NODE | TO_CLIENT


def test_no_two_messages_have_the_same_tag() -> None:
    tags = [type(example).__struct_config__.tag for example in EXAMPLES.values()]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_what_is_said_is_what_is_heard(kind: type) -> None:
    role = "node" if kind in TO_NODE else "client"
    state = State.GREETING if kind is wire.Hello else State.GREETED if kind is wire.Welcome else State.OPEN
    assert heard(in_state(role, state), spoken(EXAMPLES[kind])) == [EXAMPLES[kind]]


def allowed(role: str, state: State) -> set[type]:
    """The table of `docs/protocol.md`."""
    if state is State.GREETING:
        return {wire.Hello, wire.Goodbye} if role == "node" else {wire.Goodbye}
    if state is State.GREETED:
        return {wire.Goodbye} if role == "node" else {wire.Welcome, wire.Goodbye}
    if state in (State.OPEN, State.DRAINING):
        return TO_NODE - {wire.Hello} if role == "node" else TO_CLIENT - {wire.Welcome}
    return set()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("role", ["node", "client"])
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_each_end_hears_in_each_state_what_may_be_said_then_and_nothing_else(
    kind: type, role: Any, state: State
) -> None:
    listener = in_state(role, state)
    if state is State.CLOSED:
        assert heard(listener, spoken(EXAMPLES[kind])) == []
    elif kind in allowed(role, state):
        assert heard(listener, spoken(EXAMPLES[kind])) == [EXAMPLES[kind]]
    else:
        with pytest.raises(ProtocolError) as caught:
            heard(listener, spoken(EXAMPLES[kind]))
        for_the_other = kind not in (TO_NODE if role == "node" else TO_CLIENT)
        assert caught.value.code == ("bad-message" if for_the_other else "unexpected-message")


def test_a_connection_opens_drains_and_closes() -> None:
    client, node = opened()
    assert (client.state, node.state) == (State.OPEN, State.OPEN)
    assert client.heartbeat_seconds == 15.0
    heard(client, node.say(wire.Goodbye("draining", "soon"), now=1.0))
    assert (client.state, node.state) == (State.DRAINING, State.DRAINING)
    heard(node, client.say(wire.Goodbye("closed", "done"), now=1.0))
    assert (client.state, node.state) == (State.CLOSED, State.CLOSED)


def test_a_node_that_drains_before_the_handshake_just_closes() -> None:
    client = in_state("client", State.GREETED)
    heard(client, spoken(wire.Goodbye("draining", "soon")))
    assert client.state is State.CLOSED


def test_after_the_last_word_nothing_is_heard() -> None:
    client, node = opened()
    said = [*client.say(wire.Ping(), now=0.0), *client.say(wire.Goodbye("closed", ""), now=0.0), *spoken(wire.Ping())]
    assert [type(message) for message in heard(node, said)] == [wire.Ping, wire.Goodbye]


def test_an_answer_belongs_to_a_call_that_is_open_once() -> None:
    client, node = opened()
    call = client.new_call()
    heard(node, client.say(wire.ListTopics(call), now=0.0))
    assert node.calls == client.calls == {call}
    answer = node.say(wire.Done(call), now=0.0)
    heard(client, answer)
    assert node.calls == client.calls == set()
    with pytest.raises(ProtocolError):
        heard(client, answer)


def test_call_zero_is_never_open() -> None:
    client, node = opened()
    for _ in range(3):
        heard(node, client.say(wire.Nack(0, 7, LEASE), now=0.0))
    assert node.calls == client.calls == set()


def test_ten_thousand_calls_may_be_open_and_no_more() -> None:
    client, node = opened()
    for _ in range(CALLS_OPEN_MAX):
        heard(node, client.say(wire.ListTopics(client.new_call()), now=0.0))
    with pytest.raises(ProtocolError) as caught:
        heard(node, spoken(wire.ListTopics(client.new_call())))
    assert caught.value.code == "unexpected-message"


@pytest.mark.parametrize("call", [5, -1])
def test_a_call_is_a_new_positive_number(call: int) -> None:
    _, node = opened()
    node.calls.add(5)
    with pytest.raises(ProtocolError):
        heard(node, _raw(wire.ListTopics(call)))


def _raw(message: Any) -> list[Any]:
    return frame(msgspec.msgpack.encode(message))


@pytest.mark.parametrize(
    "header",
    [
        b"\xc1",
        b"\x90",
        b"\x91\x63",
        b"\x81\x01\x02",
        b"\x91\x14",
        b"\x91" * 10_000,
        b"\x93\x32\x01\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\x94\x32\x01\xa1x" + b"\x81\xa1y" * 60_000 + b"\xc0",
        b"\x94\x32\x01\xa1x\x81\x91\x01\x02",
        b"\x93\x14\x01\xa2\xff\xfe",
    ],
)
def test_a_header_that_makes_no_sense_is_a_protocol_error(header: bytes) -> None:
    _, node = opened()
    with pytest.raises(ProtocolError) as caught:
        heard(node, frame(header))
    assert caught.value.code == "bad-message"


def test_fields_that_a_newer_peer_adds_are_passed_over() -> None:
    _, node = opened()
    header = msgspec.msgpack.encode([20, 1, "orders", 0, 0, b"", 0, "something", {"new": True}])
    assert heard(node, frame(header)) == [wire.Publish(1, "orders")]


# --- time -----------------------------------------------------------------------------------------------------------


def test_the_handshake_has_a_deadline() -> None:
    for state in (State.GREETING, State.GREETED):
        node = in_state("node", state)
        assert node.tick(HANDSHAKE_SECONDS_MAX) == []
        with pytest.raises(ProtocolError) as caught:
            node.tick(HANDSHAKE_SECONDS_MAX + 1)
        assert caught.value.code == "too-slow"


def test_a_frame_has_a_deadline_from_its_first_byte_on() -> None:
    _, node = opened()
    for moment, byte in enumerate(b"".join(spoken(EXAMPLES[wire.Publish]))[:10]):
        heard(node, [bytes([byte])], 6.0 * moment)
        node.tick(6.0 * moment)
    node.tick(FRAME_SECONDS_MAX)
    with pytest.raises(ProtocolError) as caught:
        node.tick(FRAME_SECONDS_MAX + 0.1)
    assert caught.value.code == "too-slow"


def test_frames_that_follow_each_other_each_have_their_own_time() -> None:
    _, node = opened()
    whole = b"".join(spoken(wire.Pong()))
    for moment in range(0, 200, 10):
        # The rest of one frame, and the first byte of the next.
        heard(node, [whole[1:] + whole[:1]] if moment else [whole[:1]], float(moment))
        node.tick(float(moment))


def test_heartbeats_go_out_when_nothing_else_does_and_silence_ends_the_connection() -> None:
    _, node = opened()
    assert node.tick(14.0) == []
    assert node.tick(15.0) != []
    assert node.tick(15.0 * SILENT_HEARTBEATS_MAX) != []
    with pytest.raises(ProtocolError) as caught:
        node.tick(15.0 * SILENT_HEARTBEATS_MAX + 0.1)
    assert caught.value.code == "silent"


def test_whoever_did_not_listen_does_not_call_the_other_silent() -> None:
    _, node = opened()
    heard(node, [b"\x01"], 1.0)
    for moment in range(0, 1_000, 10):
        node.tick(float(moment), deaf=True)
    with pytest.raises(ProtocolError):
        node.tick(990.0 + 46.0)
