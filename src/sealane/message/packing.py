"""Compressed batches: the size that they unpack to (u64, little-endian), then one zstd frame.

Nodes store them so, and hand them on to readers that open them themselves. To a reader they are foreign bytes: a few
of them could claim any size, so what they unpack to is known, and within a limit, before any of it is unpacked.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from sealane.errors import InvalidBatch, LimitExceeded

_SIZE = struct.Struct("<Q")
SIZE_BYTES = _SIZE.size
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_WHOLE_SIZE = {0: struct.Struct("<B"), 1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: _SIZE}
"""How a zstd frame's header says the size of its content, by the two highest bits of its descriptor (RFC 8878)."""
_SMALL_SIZES_FROM = 256
"""A size of two bytes is counted from here: smaller ones take one."""


def pack(body: pa.Buffer) -> pa.Buffer:
    return pa.py_buffer(_SIZE.pack(body.size) + pa.compress(body, codec="zstd", asbytes=True))


def unpacked_size(body: pa.Buffer | memoryview) -> int:
    """What it says that it unpacks to. Raises `struct.error` if it is cut off."""
    return int(_SIZE.unpack_from(body)[0])


def unpack(body: pa.Buffer) -> pa.Buffer:
    """Of bytes that this node wrote."""
    return pa.decompress(body.slice(SIZE_BYTES), decompressed_size=unpacked_size(body), codec="zstd")


def unpack_foreign(body: pa.Buffer, bytes_max: int) -> pa.Buffer:
    """Raises `LimitExceeded` for more than `bytes_max`, and `InvalidBatch` for what is not one whole zstd frame of the
    size that was said.
    """
    if body.size < SIZE_BYTES:
        raise InvalidBatch(f"it is compressed, and cut off after {body.size} bytes")
    size = unpacked_size(body)
    if size > bytes_max:
        raise LimitExceeded("unpacked batch", bytes_max, size, setting="limits.batch_bytes_max")
    # zstd itself sees to it that a frame holds what its header says. Were that less, the rest would be stale memory.
    if _size_of_frame(memoryview(body).cast("B")[SIZE_BYTES:]) != size:
        raise InvalidBatch(f"it is said to unpack to {size:,} bytes, and its content says otherwise")
    try:
        return unpack(body)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidBatch(f"it cannot be unpacked: {error}") from None


def _size_of_frame(frame: memoryview) -> int | None:
    """The size of its content by the header of a zstd frame; None if it says none, or is no such frame."""
    if len(frame) < 5 or bytes(frame[:4]) != _FRAME_MAGIC:
        return None
    descriptor = frame[4]
    kind, in_one_segment, dictionary = descriptor >> 6, bool(descriptor & 0x20), descriptor & 3
    if dictionary or (kind == 0 and not in_one_segment):
        return None
    at = 5 + (not in_one_segment)
    layout = _WHOLE_SIZE[kind]
    if len(frame) < at + layout.size:
        return None
    size = int(layout.unpack_from(frame, at)[0])
    return size + _SMALL_SIZES_FROM if kind == 1 else size
