"""Frames: whatever pieces they arrive in, what comes out is what went in, or a clear error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.wire.errors import ProtocolError
from sealane.wire.frames import (
    ALIGNMENT,
    DIRECT_BYTES,
    HEADER_BYTES_MAX,
    HELLO_BYTES_MAX,
    PREFIX,
    SCRATCH_BYTES,
    FrameReader,
    frame,
    new_scratch,
)

FRAME_MAX = 1 << 20


def feed(reader: FrameReader, data: bytes) -> list[tuple[bytes, bytes]]:
    """Write bytes as a transport does: as many as there is room for at a time."""
    found = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        found += [(bytes(header), bytes(body)) for header, body in reader.received(count)]
        data = data[count:]
    return found


def joined(header: bytes, body: bytes = b"") -> bytes:
    return b"".join(frame(header, [body] if body else []))


CONVERSATION = [(b"a", b""), (b"header", b"body" * 4), (b"h" * 9, b"b" * 24), (b"x" * 7, b"")]
WHOLE = b"".join(joined(*each) for each in CONVERSATION)


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
def test_frames_may_be_cut_anywhere(cut: int) -> None:
    reader = FrameReader(new_scratch(), FRAME_MAX)
    first = feed(reader, WHOLE[:cut])
    assert reader.midway == (cut not in {len(b"".join(joined(*e) for e in CONVERSATION[:n])) for n in range(5)})
    assert first + feed(reader, WHOLE[cut:]) == CONVERSATION
    assert not reader.midway


def test_frames_may_come_byte_by_byte() -> None:
    reader = FrameReader(new_scratch(), FRAME_MAX)
    assert [found for place in range(len(WHOLE)) for found in feed(reader, WHOLE[place : place + 1])] == CONVERSATION


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=50), st.integers(0, 40_000)), max_size=8),
    st.lists(st.integers(1, 70_000), max_size=30),
)
def test_any_frames_in_any_pieces_come_out_whole(contents: list[tuple[bytes, int]], cuts: list[int]) -> None:
    conversation = [(header, bytes([size % 251]) * (size - size % ALIGNMENT)) for header, size in contents]
    data = b"".join(joined(header, body) for header, body in conversation)
    reader = FrameReader(new_scratch(), FRAME_MAX)
    found = []
    for cut in [*cuts, len(data)]:
        found += feed(reader, data[:cut])
        data = data[cut:]
    assert found == conversation
    assert not reader.midway


@pytest.mark.parametrize("size", [DIRECT_BYTES - 64, DIRECT_BYTES, DIRECT_BYTES + 64, SCRATCH_BYTES, FRAME_MAX - 64])
def test_bodies_begin_where_arrow_wants_them(size: int) -> None:
    scratch = new_scratch()
    for header in (b"1", b"12345678", b"123456789"):
        data = joined(header, bytes(size))
        reader = FrameReader(scratch, FRAME_MAX)
        bodies = []
        for start in range(0, len(data), 10_000):
            piece = data[start : start + 10_000]
            reader.get_buffer()[: len(piece)] = piece
            bodies += [body for _, body in reader.received(len(piece))]
        (body,) = bodies
        assert len(body) == size
        assert memory_address(body) % ALIGNMENT == 0


def memory_address(view: memoryview) -> int:
    address: int = np.frombuffer(view, np.uint8).ctypes.data
    return address


def test_a_received_frame_does_not_change_when_the_next_one_comes() -> None:
    reader = FrameReader(new_scratch(), FRAME_MAX)
    data = joined(b"one", b"1" * 64)
    reader.get_buffer()[: len(data)] = data
    ((header, body),) = reader.received(len(data))
    feed(reader, joined(b"two", b"2" * 64))
    assert (bytes(header), bytes(body)) == (b"one", b"1" * 64)


@pytest.mark.parametrize(
    ("prefix", "code"),
    [
        (PREFIX.pack(FRAME_MAX - PREFIX.size + 1, 1), "frame-too-long"),
        (PREFIX.pack(2**32 - 1, 1), "frame-too-long"),
        (PREFIX.pack(100, 0), "bad-frame"),
        (PREFIX.pack(100, 101), "bad-frame"),
        (PREFIX.pack(0, 0), "bad-frame"),
        (PREFIX.pack(FRAME_MAX - PREFIX.size, HEADER_BYTES_MAX + 1), "bad-frame"),
    ],
)
def test_what_cannot_be_a_frame_is_known_by_its_first_eight_bytes(prefix: bytes, code: str) -> None:
    reader = FrameReader(new_scratch(), FRAME_MAX)
    assert feed(reader, WHOLE + prefix) == CONVERSATION, "what was sound before it is heard"
    assert isinstance(reader.error, ProtocolError)
    assert reader.error.code == code
    assert feed(reader, WHOLE) == [], "and nothing after it"


@pytest.mark.parametrize(
    "prefix", [PREFIX.pack(FRAME_MAX - PREFIX.size, HEADER_BYTES_MAX), PREFIX.pack(FRAME_MAX - PREFIX.size, 1)]
)
def test_the_longest_frame_and_header_are_taken(prefix: bytes) -> None:
    reader = FrameReader(new_scratch(), FRAME_MAX)
    length, _ = PREFIX.unpack(prefix)
    (found,) = feed(reader, prefix + bytes(length))
    assert reader.error is None
    assert found


def test_before_the_handshake_a_frame_is_short() -> None:
    reader = FrameReader(new_scratch())
    assert len(feed(reader, PREFIX.pack(HELLO_BYTES_MAX - 8, 8) + bytes(HELLO_BYTES_MAX - 8))) == 1
    feed(reader, PREFIX.pack(HELLO_BYTES_MAX - 7, 8))
    assert reader.error is not None
    assert reader.error.code == "frame-too-long"


def test_a_prefix_alone_makes_nobody_keep_a_long_frame() -> None:
    reader = FrameReader(new_scratch(), 1 << 40)
    feed(reader, PREFIX.pack(DIRECT_BYTES - 100, 8))
    assert len(reader.get_buffer()) > DIRECT_BYTES, "what is short goes through the buffer that all share"
