"""The parts of a WebSocket that need no socket: frames, formats, and what a consumer holds."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from websockets.frames import Frame, Opcode

from sealane.doors.http.websocket.formats import FORMATS, JSON, Format, Unreadable
from sealane.doors.http.websocket.formats import Frame as Messages
from sealane.doors.http.websocket.framing import Framing, Whole
from sealane.doors.http.websocket.holdings import Handed, Holdings
from sealane.doors.http.websocket.messages import Ping, Request
from sealane.errors import InvalidMessage

CLOSING = b"\x88"
"""How a close frame begins."""
A, B, C = (uuid.UUID(int=number) for number in (1, 2, 3))


def handed(number: int, messages: dict[int, uuid.UUID], *, partition: int = 0, lease: int = 7) -> Handed:
    frame = Messages([each.bytes for each in messages.values()], list(messages), [])
    return Handed(number, partition, lease, frame)


def test_what_is_held_is_found_by_its_delivery_and_by_its_ids() -> None:
    held = Holdings()
    held.add(handed(1, {10: A, 11: B}))
    held.add(handed(2, {12: C}))
    assert len(held) == 3
    assert held.take(held.find(None, [A, C, A])) == [(0, 7, BitMap64([10, 12]))]
    assert held.take(held.find(1, None)) == [(0, 7, BitMap64([11]))]
    assert len(held) == 0


def test_leases_of_several_partitions_are_answered_for_one_by_one() -> None:
    held = Holdings()
    held.add(handed(1, {10: A}, partition=0, lease=7))
    held.add(handed(2, {10: B}, partition=1, lease=7))
    assert held.take_all() == [(0, 7, BitMap64([10])), (1, 7, BitMap64([10]))]
    assert held.take_all() == []


@pytest.mark.parametrize(("delivery", "ids"), [(2, None), (None, [A, C])])
def test_what_is_not_held_is_not_found_and_nothing_is_taken(delivery: int | None, ids: list[uuid.UUID] | None) -> None:
    held = Holdings()
    held.add(handed(1, {10: A}))
    with pytest.raises(KeyError):
        held.find(delivery, ids)
    assert len(held) == 1


def test_of_two_messages_with_one_id_each_is_answered_for() -> None:
    held = Holdings()
    held.add(handed(1, {10: A, 20: A}))
    assert len(held) == 2
    assert held.take(held.find(None, [A])) == [(0, 7, BitMap64([20]))]
    assert held.take(held.find(1, None)) == [(0, 7, BitMap64([10]))]


def test_what_is_revoked_is_held_no_more() -> None:
    held = Holdings()
    held.add(handed(1, {10: A, 11: B}))
    held.add(handed(2, {12: C}))
    assert held.revoke(0, 7, BitMap64([11, 12, 99])) == [B.bytes, C.bytes]
    assert held.revoke(0, 8, BitMap64([10])) == []
    assert len(held) == 1


def test_leases_that_have_ended_without_a_word_are_forgotten() -> None:
    held = Holdings()
    held.add(handed(1, {10: A}, lease=7))
    held.add(handed(2, {11: B}, lease=8))
    held.tidy(lambda partition, lease: lease == 8)
    assert held.take_all() == [(0, 8, BitMap64([11]))]


def client_frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def test_a_message_is_whole_when_its_last_byte_has_come() -> None:
    framing = Framing(100)
    sent = client_frame(Opcode.TEXT, b"hel", fin=False) + client_frame(Opcode.CONT, b"lo")
    heard = [framing.receive(sent[place : place + 1])[0] for place in range(len(sent))]
    assert heard[:-1] == [[]] * (len(sent) - 1)
    assert heard[-1] == [Whole(True, b"hello")]


def test_pings_are_answered_and_are_no_messages() -> None:
    framing = Framing(100)
    assert framing.receive(client_frame(Opcode.PING, b"x")) == ([], True)
    assert framing.to_send() == (Frame(Opcode.PONG, b"x").serialize(mask=False), False)


def test_a_closing_is_repeated_and_ends_the_connection() -> None:
    framing = Framing(100)
    framing.receive(client_frame(Opcode.CLOSE, b"\x03\xe8"))
    assert not framing.is_open
    assert framing.to_send() == (Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=False), True)


def test_nothing_is_heard_behind_the_last_word() -> None:
    framing = Framing(100)
    framing.close(1001, "Grüße" * 100)
    data, is_last = framing.to_send()
    assert len(data) <= 127
    assert not is_last
    assert framing.receive(client_frame(Opcode.TEXT, b"hello"))[0] == []
    framing.receive(client_frame(Opcode.CLOSE, b"\x03\xe9"))
    assert framing.to_send() == (b"", True)


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_whatever_bytes_come_are_frames_or_the_end_of_the_connection(pieces: list[bytes]) -> None:
    framing, sent = Framing(1_000), b""
    for piece in pieces:
        framing.receive(piece)
        sent += framing.to_send()[0]
    assert framing.is_open or CLOSING in sent


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@given(data=st.binary(max_size=300))
def test_whatever_comes_is_a_request_or_a_refusal(format: Format, data: bytes) -> None:
    check(format, data)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**70) | st.floats() | st.text(max_size=8) | st.just("publish"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "call", "consumer", "delivery", "ids", "topic", "messages", "payload", "credit", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@given(kind=st.sampled_from(["hello", "publish", "subscribe", "credit", "ack", "nack", "extend", "x"]), said=values)
def test_whatever_is_said_is_a_request_or_a_refusal(format: Format, kind: str, said: object) -> None:
    fields = said if isinstance(said, dict) else {"messages": said}
    try:
        data = format.encode({**fields, "type": kind})
    except (OverflowError, UnicodeEncodeError):
        return
    check(format, data)


def check(format: Format, data: bytes) -> None:
    with suppress(Unreadable):
        try:
            assert isinstance(format.read(data), Request)
        except InvalidMessage:
            assert isinstance(format.call_of(data), int)


def test_a_request_that_is_refused_has_its_call() -> None:
    assert JSON.call_of(b'{"type": "dance", "call": 7}') == 7
    assert JSON.call_of(b'{"type": "dance", "call": "seven"}') == 0
    assert JSON.read(b'{"type": "ping", "call": 7}') == Ping(call=7)
