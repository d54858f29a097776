"""Frames: a length of four bytes, the highest first, and as many bytes. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Sequence

HEAD = struct.Struct(">I")
HEAD_BYTES = HEAD.size


class Framing:
    """Bytes in, as they come; frames out. One connection's, in one direction."""

    __slots__ = ("_bytes_max", "_held", "_needed_bytes", "too_long_bytes")

    def __init__(self, bytes_max: int) -> None:
        """No frame has more than `bytes_max`."""
        self._bytes_max = bytes_max
        self._held = bytearray()
        """The beginning of a frame that has not come whole."""
        self._needed_bytes = HEAD_BYTES
        """So much must be held before there is anything to see."""
        self.too_long_bytes = 0
        """How long a frame is said to be that is too long: where that is not 0, nothing behind it can be read."""

    @property
    def held_bytes(self) -> int:
        """What has come of a frame that has not come whole."""
        return len(self._held)

    def receive(self, data: bytes) -> list[bytes]:
        """The frames that are whole by now, in their order: also those in front of one that is too long."""
        if self.too_long_bytes:
            return []
        if self._held:
            # Each piece is copied once, however many a frame comes in, and they are put together once.
            self._held += data
            if len(self._held) < self._needed_bytes:
                return []
            data = bytes(self._held)
            self._held.clear()
        frames: list[bytes] = []
        found, length_at = frames.append, HEAD.unpack_from
        start, stop, needed = 0, len(data), HEAD_BYTES
        while start + HEAD_BYTES <= stop:
            length = length_at(data, start)[0]
            if length > self._bytes_max:
                self.too_long_bytes = length
                return frames
            needed = HEAD_BYTES + length
            if start + needed > stop:
                break
            found(data[start + HEAD_BYTES : start + needed])
            start += needed
            needed = HEAD_BYTES
        self._needed_bytes = needed
        if start < stop:
            self._held += memoryview(data)[start:]
        return frames


def first_frame(data: bytes, bytes_max: int) -> tuple[bytes, bytes] | None:
    """The first frame of these bytes, and what follows it; None if it has not come whole.

    Raises `ValueError` if it is longer than `bytes_max`.
    """
    if len(data) < HEAD_BYTES:
        return None
    length = HEAD.unpack_from(data)[0]
    if length > bytes_max:
        raise ValueError(f"its length is {length:,}")
    end = HEAD_BYTES + length
    return (data[HEAD_BYTES:end], data[end:]) if len(data) >= end else None


def framed(payloads: Sequence[bytes]) -> bytes:
    """All of them as frames, one behind the other."""
    if not payloads:
        return b""
    lengths = set(map(len, payloads))
    if len(lengths) == 1:
        # What one program sends is often all of one length; then its head is just what stands between them.
        head = HEAD.pack(lengths.pop())
        return head + head.join(payloads)
    pack = HEAD.pack
    return b"".join([piece for payload in payloads for piece in (pack(len(payload)), payload)])
