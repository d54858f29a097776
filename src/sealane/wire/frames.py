"""Frames: a prefix, a small msgpack header, and a body of Arrow batches.

    u32 length of what follows the prefix | u32 length of the header | header, padded to 8 bytes | body

Both lengths are little-endian. The body begins at a multiple of 8 bytes from the frame's start, as Arrow wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from sealane.message.blocks import BLOCKS
from sealane.wire.errors import ProtocolError

PREFIX = struct.Struct("<II")
ALIGNMENT = 8
PADDING = tuple(bytes(count) for count in range(ALIGNMENT))

HEADER_BYTES_MAX = 256 << 10
"""A header to a node is small: the largest are acks of thousands of scattered messages, and more go in several."""
ANSWER_HEADER_BYTES_MAX = 4 << 20
"""A header to a client: it may list the place of each of 100,000 messages that are scattered over partitions."""
HELLO_BYTES_MAX = 16 << 10
"""What may come before the handshake is done: so much, and no more, an unknown peer can make the other side keep."""
DIRECT_BYTES = 16 << 10
"""A frame longer than this is received into memory of its own, without a copy; shorter ones are copied out of the
shared buffer, so that a message of 100 bytes does not keep a whole buffer alive."""
JOINED_BYTES = 64 << 10
"""A frame up to this length is sent as one piece: a copy costs less than a second call into the kernel, which wakes
its receiver for half a frame too."""
SCRATCH_BYTES = 256 << 10
"""Received at once into the buffer that all connections of a loop share."""

Buffer: TypeAlias = Any
"""Bytes, a memoryview of bytes or an Arrow buffer: its length is its number of bytes."""


class Frame(NamedTuple):
    header: memoryview
    body: memoryview


def new_scratch() -> memoryview:
    """A buffer for `FrameReader`s. All readers of one event loop may share it: between `get_buffer` and `received`
    nothing else runs.
    """
    return memoryview(bytearray(SCRATCH_BYTES))


class FrameReader:
    """Cuts what arrives into frames. Feed it by writing into `get_buffer()` and telling `received(count)`.

    It never holds more than one unfinished frame, and allocates for that only what its checked prefix announces.
    """

    __slots__ = ("_direct", "_filled", "_rest", "_scratch", "error", "frame_bytes_max", "header_bytes_max")

    def __init__(
        self,
        scratch: memoryview,
        frame_bytes_max: int = HELLO_BYTES_MAX,
        header_bytes_max: int = HEADER_BYTES_MAX,
    ) -> None:
        self._scratch = scratch
        self.frame_bytes_max = frame_bytes_max
        self.header_bytes_max = header_bytes_max
        self.error: ProtocolError | None = None
        """What came cannot be a frame: nothing more will be cut out of it."""
        self._rest = b""
        """The beginning of a frame that is too short to be received by itself."""
        self._direct: memoryview | None = None
        self._filled = 0

    @property
    def midway(self) -> bool:
        """Whether a frame has begun to arrive and is not complete."""
        return self._direct is not None or bool(self._rest)

    def get_buffer(self) -> memoryview:
        """Where the next bytes go."""
        if self._direct is not None:
            return self._direct[self._filled :]
        kept = len(self._rest)
        if kept:
            self._scratch[:kept] = self._rest
        return self._scratch[kept:]

    def received(self, count: int) -> list[Frame]:
        """The frames that are complete with these bytes, up to what cannot be one: then `error` tells why."""
        if self.error is not None:
            return []
        if self._direct is not None:
            self._filled += count
            if self._filled < len(self._direct):
                return []
            whole, self._direct, self._filled = self._direct, None, 0
            return [_open(whole, PREFIX.unpack_from(whole)[1])]
        stop = len(self._rest) + count
        self._rest = b""
        frames: list[Frame] = []
        at = 0
        while stop - at >= PREFIX.size:
            length, header_length = PREFIX.unpack_from(self._scratch, at)
            if not 0 < header_length <= length <= self.frame_bytes_max - PREFIX.size or (
                header_length > self.header_bytes_max
            ):
                self.error = self._fault(length, header_length)
                return frames
            end = at + PREFIX.size + length
            if end > stop:
                if end - at > DIRECT_BYTES:
                    self._begin_direct(at, stop, end - at)
                    return frames
                break
            frames.append(_open(memoryview(bytes(self._scratch[at:end])), header_length))
            at = end
        self._rest = bytes(self._scratch[at:stop])
        return frames

    def _fault(self, length: int, header_length: int) -> ProtocolError:
        if PREFIX.size + length > self.frame_bytes_max:
            problem = f"a frame of {PREFIX.size + length:,} bytes is longer than the {self.frame_bytes_max:,} allowed"
            return ProtocolError("frame-too-long", problem)
        problem = f"a header of {header_length:,} bytes does not fit a frame of {length:,}"
        return ProtocolError("bad-frame", problem)

    def _begin_direct(self, at: int, stop: int, length: int) -> None:
        whole = BLOCKS.take(length)
        whole[: stop - at] = self._scratch[at:stop]
        self._direct, self._filled = whole, stop - at


def _open(whole: memoryview, header_length: int) -> Frame:
    end = PREFIX.size + header_length
    return Frame(whole[PREFIX.size : end], whole[end + -header_length % ALIGNMENT :])


def frame(header: bytes, body: Sequence[Buffer] = ()) -> list[Buffer]:
    """The pieces of a frame, to be written one after another. A long body is not copied; a short frame is one piece."""
    if not body:
        return [PREFIX.pack(len(header), len(header)) + header]
    padding = -len(header) % ALIGNMENT
    length = len(header) + padding + sum(map(len, body))
    return joined([PREFIX.pack(length, len(header)) + header + PADDING[padding], *body], length)


def joined(pieces: list[Buffer], length: int) -> list[Buffer]:
    """The same in one piece, if they are short."""
    return [b"".join(pieces)] if length <= JOINED_BYTES and len(pieces) > 1 else pieces
