"""Frames: from bytes in any pieces, and back; and how what is delivered becomes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from sealane.doors.frames.framing import HEAD_BYTES, Framing, first_frame, framed
from sealane.doors.frames.handing import PIECE_BYTES, handed
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.errors import InvalidArgument
from sealane.message import Limits, from_payloads
from sealane.message.ids import Stamp
from sealane.node.deliveries import Delivery, Part

PAYLOADS = st.lists(st.binary(max_size=40), max_size=20)
CUTS = st.lists(st.integers(1, 30), max_size=40)
STAMP = Stamp(1, bytes(16))


def in_pieces(data: bytes, lengths: list[int]) -> list[bytes]:
    """All of the data, cut where the lengths say."""
    pieces, at = [], 0
    for length in lengths:
        pieces.append(data[at : at + length])
        at += length
    return [*pieces, data[at:]]


def one_by_one(payloads: list[bytes]) -> bytes:
    """As the document has it, written once more and differently."""
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


# --- framing ----------------------------------------------------------------------------------------------------------


@given(PAYLOADS)
def test_frames_are_written_as_the_document_has_it(payloads: list[bytes]) -> None:
    assert framed(payloads) == one_by_one(payloads)


@given(PAYLOADS, CUTS)
def test_the_pieces_in_which_frames_come_make_no_difference(payloads: list[bytes], lengths: list[int]) -> None:
    framing = Framing(40)
    found = [frame for piece in in_pieces(one_by_one(payloads), lengths) for frame in framing.receive(piece)]
    assert found == payloads
    assert framing.held_bytes == 0
    assert all(type(frame) is bytes for frame in found)


@given(PAYLOADS, CUTS, st.integers(41, 2**32 - 1), st.binary(max_size=60))
def test_a_frame_that_is_too_long_is_found_by_its_head_and_those_before_it_are_there(
    payloads: list[bytes], lengths: list[int], too_long: int, rest: bytes
) -> None:
    framing = Framing(40)
    data = one_by_one(payloads) + too_long.to_bytes(4, "big") + rest
    found = [frame for piece in in_pieces(data, lengths) for frame in framing.receive(piece)]
    assert found == payloads
    assert framing.too_long_bytes == too_long
    assert framing.receive(one_by_one([b"x"])) == []


@given(PAYLOADS, st.binary(max_size=40), st.data())
def test_what_has_not_come_whole_is_held(payloads: list[bytes], last: bytes, data: st.DataObject) -> None:
    begun = one_by_one([last])
    begun = begun[: data.draw(st.integers(0, len(begun) - 1))]
    framing = Framing(40)
    assert framing.receive(one_by_one(payloads) + begun) == payloads
    assert framing.held_bytes == len(begun)


def test_a_frame_of_just_the_limit_is_taken() -> None:
    framing = Framing(3)
    assert framing.receive(framed([b"abc"])) == [b"abc"]
    assert framing.receive(framed([b"abcd"])) == []
    assert framing.too_long_bytes == 4


def test_a_frame_that_comes_byte_by_byte_is_put_together_once() -> None:
    framing = Framing(1 << 20)
    payload = bytes(range(256)) * 400
    data = framed([payload])
    assert [frame for at in range(len(data)) for frame in framing.receive(data[at : at + 1])] == [payload]


@pytest.mark.parametrize("cut", range(HEAD_BYTES + 8))
def test_a_first_frame_that_has_not_come_whole_is_none(cut: int) -> None:
    assert first_frame(framed([b"PRODUCER"])[:cut], 64) is None


def test_what_follows_the_first_frame_is_left_as_it_is() -> None:
    assert first_frame(framed([b"PRODUCER", b"a message"]) + b"\x00", 64) == (
        b"PRODUCER",
        framed([b"a message"]) + b"\x00",
    )
    assert first_frame(framed([b""]), 64) == (b"", b"")


def test_a_first_frame_that_is_too_long_is_known_by_its_head() -> None:
    assert first_frame(framed([b"x" * 64]), 64) == (b"x" * 64, b"")
    with pytest.raises(ValueError, match="its length is 65"):
        first_frame((65).to_bytes(4, "big"), 64)


# --- what is delivered ------------------------------------------------------------------------------------------------


def delivery_of(*parts: Part) -> Delivery:
    return Delivery("default/frames", 0, "frames", 7, 0, parts, ())


def part_of(payloads: list[bytes], offsets: range | np.ndarray) -> Part:
    return Part(offsets, from_payloads(payloads, STAMP, limits=Limits()))


def test_small_parts_are_written_together() -> None:
    parts = [part_of([b"%d" % at], range(at, at + 1)) for at in range(1_000)]
    (piece,) = handed(delivery_of(*parts))
    assert piece.data == one_by_one([b"%d" % at for at in range(1_000)])
    assert (piece.partition, piece.lease, len(piece)) == (0, 7, 1_000)
    assert piece.offsets == BitMap64(range(1_000))


@pytest.mark.parametrize("length", [0, 100, 30_000, 600_000])
def test_a_large_part_is_cut_and_each_piece_knows_what_it_settles(length: int) -> None:
    count = min(20_000, (4 << 20) // (length + 1))
    payloads = [b"%d:" % at + bytes(length) for at in range(count)]
    offsets = np.arange(10, 10 + 2 * count, 2, dtype=np.uint64)
    pieces = list(handed(delivery_of(part_of(payloads, offsets))))
    assert b"".join(piece.data for piece in pieces) == one_by_one(payloads)
    assert [offset for piece in pieces for offset in piece.offsets] == offsets.tolist()
    assert all(len(piece.data) < 2 * PIECE_BYTES or len(piece) == 1 for piece in pieces)


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["consumers_max", "consumer_buffer_messages", "frame_bytes_max", "connections_max"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    given: dict[str, Any] = {name: 1}
    FramesDoorSettings(**given)
    given[name] = 0
    with pytest.raises(InvalidArgument, match=rf"doors\.frames\.{name}"):
        FramesDoorSettings(**given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("topic", "a b"), ("topic", "_system"), ("topic", "no/such/name"), ("subscription", "a/b"), ("mode", "both")],
)
def test_a_name_that_cannot_be_is_refused(name: str, value: str) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(InvalidArgument, match=rf"doors\.frames\.{name}"):
        FramesDoorSettings(**given)


def test_a_topic_may_name_its_domain() -> None:
    assert FramesDoorSettings(topic="shop/orders").topic == "shop/orders"
