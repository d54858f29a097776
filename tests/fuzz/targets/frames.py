"""Frames of the frames door. The first byte says in which pieces they come."""

from __future__ import annotations

from sealane.doors.frames.framing import HEAD_BYTES, Framing, first_frame, framed
from tests.fuzz.target import Target

FRAME_BYTES_MAX = 1_000

SEEDS = (
    b"\x01" + framed([b"hello"]),
    b"\x07" + framed([b"one", b"", b"three"]),
    b"\xff" + framed([b"x" * FRAME_BYTES_MAX] * 2) + b"\0\0",
)


def check(data: bytes) -> bool:
    size = max(1, data[0]) if data else 1
    stream = data[1:]
    framing = Framing(FRAME_BYTES_MAX)
    frames: list[bytes] = []
    for place in range(0, len(stream), size):
        frames += framing.receive(stream[place : place + size])
        assert framing.held_bytes <= HEAD_BYTES + FRAME_BYTES_MAX + size
    whole = Framing(FRAME_BYTES_MAX)
    assert frames == whole.receive(stream), "in pieces they are the same"
    assert framing.too_long_bytes == whole.too_long_bytes
    assert all(len(frame) <= FRAME_BYTES_MAX for frame in frames)
    assert stream.startswith(framed(frames))
    try:
        first = first_frame(stream, FRAME_BYTES_MAX)
    except ValueError:
        assert not frames
        return False
    assert (first is None) == (not frames)
    assert first is None or first[0] == frames[0]
    return bool(frames)


TARGET = Target("frames", SEEDS, check)
