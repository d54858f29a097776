"""A look into an Arrow IPC record-batch message before Arrow reads it.

Arrow trusts a few things of a message that a hostile sender chooses: that its buffers may be decompressed, to any size,
and that its row count is worth believing. This reads those from the message's flatbuffer first, every access checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sealane.errors import InvalidBatch

PREFIX_BYTES = 8
_CONTINUATION = 0xFFFFFFFF
_RECORD_BATCH = 3
_STRUCT_BYTES = 16
"""A field node (length, null count) and a buffer (offset, length) are two 64-bit integers each."""
_HEADER_TYPES = {
    0: "nothing",
    1: "a schema",
    2: "a dictionary batch",
    3: "a record batch",
    4: "a tensor",
    5: "a sparse tensor",
}

_KNOWN_BYTES = 1024
"""Metadata up to this length is remembered: that of a whole batch has about 500 bytes."""

_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_TWO_I64 = struct.Struct("<qq")
_PREFIX = struct.Struct("<II")

# Places of the fields in their vtables, from format/Message.fbs.
_MESSAGE_VERSION, _MESSAGE_HEADER_TYPE, _MESSAGE_HEADER, _MESSAGE_BODY_LENGTH, _MESSAGE_CUSTOM = range(5)
_BATCH_LENGTH, _BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION, _BATCH_VARIADIC = range(5)
_VERSION_5 = 4


class MessageShape(NamedTuple):
    """What a message claims to hold, and where its lists of field nodes and buffers start."""

    rows: int
    nodes: int
    buffers: int
    nodes_at: int
    buffers_at: int
    body_at: int


def inspect(data: memoryview) -> MessageShape:
    """The shape of the one record-batch message that `data` holds from end to end; `InvalidBatch` if it does not.

    Compressed buffers are refused, whichever of the two ways of the format's history asks for them.
    """
    if len(data) < PREFIX_BYTES:
        raise InvalidBatch(f"the Arrow message is cut off after {len(data)} bytes")
    continuation, metadata_bytes = _PREFIX.unpack_from(data)
    if continuation != _CONTINUATION:
        raise InvalidBatch("the Arrow message does not start with the IPC continuation marker")
    if metadata_bytes % 8 or not PREFIX_BYTES <= metadata_bytes <= len(data) - PREFIX_BYTES:
        raise InvalidBatch(f"the Arrow message claims {metadata_bytes:,} bytes of metadata, {len(data):,} are there")
    flat = data[PREFIX_BYTES : PREFIX_BYTES + metadata_bytes]
    try:
        shape, body_bytes = _read_known(bytes(flat)) if metadata_bytes <= _KNOWN_BYTES else _read(flat)
    except (struct.error, IndexError):
        raise InvalidBatch("the Arrow message's metadata points outside of itself") from None
    body_there = len(data) - PREFIX_BYTES - metadata_bytes
    if body_bytes != body_there:
        raise InvalidBatch(f"the Arrow message claims a body of {body_bytes:,} bytes, {body_there:,} are there")
    return shape


def body_bytes_of(flat: memoryview) -> int:
    """The length of the body that this metadata claims, of whatever kind the message is."""
    try:
        body_at = _field(flat, _U32.unpack_from(flat, 0)[0], _MESSAGE_BODY_LENGTH)
        return int(_I64.unpack_from(flat, body_at)[0]) if body_at else 0
    except (struct.error, IndexError):
        raise InvalidBatch("the Arrow message's metadata points outside of itself") from None


@lru_cache(maxsize=1024)
def _read_known(flat: bytes) -> tuple[MessageShape, int]:
    """As `_read`. Batches of one shape have the same metadata to the last bit, and most batches are of few shapes."""
    return _read(memoryview(flat))


def _read(flat: memoryview) -> tuple[MessageShape, int]:
    message = _U32.unpack_from(flat, 0)[0]
    version_at = _field(flat, message, _MESSAGE_VERSION)
    if not version_at or _U16.unpack_from(flat, version_at)[0] != _VERSION_5:
        # Version 4 could ask for compression in a place of its own.
        raise InvalidBatch("the Arrow message is not of metadata version 5")
    if _field(flat, message, _MESSAGE_CUSTOM):
        raise InvalidBatch("the Arrow message carries metadata of its own, which a message batch does not")
    kind_at = _field(flat, message, _MESSAGE_HEADER_TYPE)
    kind = flat[kind_at] if kind_at else 0
    if kind != _RECORD_BATCH:
        raise InvalidBatch(f"the Arrow message holds {_HEADER_TYPES.get(kind, f'type {kind}')}, not a record batch")
    body_at = _field(flat, message, _MESSAGE_BODY_LENGTH)
    body_bytes = _I64.unpack_from(flat, body_at)[0] if body_at else 0
    header_at = _field(flat, message, _MESSAGE_HEADER)
    if not header_at:
        raise InvalidBatch("the Arrow message has no record batch")
    header = header_at + _U32.unpack_from(flat, header_at)[0]
    rows_at = _field(flat, header, _BATCH_LENGTH)
    rows = _I64.unpack_from(flat, rows_at)[0] if rows_at else 0
    if _field(flat, header, _BATCH_COMPRESSION):
        raise InvalidBatch("its Arrow buffers are compressed: foreign bytes may not be, a few could unpack to any size")
    if _field(flat, header, _BATCH_VARIADIC):
        raise InvalidBatch("the Arrow message has variadic buffers, which no column of a message batch has")
    nodes, nodes_at = _vector(flat, _field(flat, header, _BATCH_NODES))
    buffers, buffers_at = _vector(flat, _field(flat, header, _BATCH_BUFFERS))
    shape = MessageShape(rows, nodes, buffers, nodes_at, buffers_at, PREFIX_BYTES + len(flat))
    return shape, body_bytes


def _field(flat: memoryview, table: int, field: int) -> int:
    """Where a table's field is, or 0 when the table leaves it out."""
    vtable = table - _I32.unpack_from(flat, table)[0]
    if vtable < 0:
        raise IndexError
    slot = 4 + 2 * field
    if slot + 2 > _U16.unpack_from(flat, vtable)[0]:
        return 0
    offset = _U16.unpack_from(flat, vtable + slot)[0]
    return table + offset if offset else 0


def _vector(flat: memoryview, at: int) -> tuple[int, int]:
    """How many elements a vector has, and where they start."""
    if not at:
        return 0, 0
    start = at + _U32.unpack_from(flat, at)[0]
    return _U32.unpack_from(flat, start)[0], start + 4


def nulls_claimed(data: memoryview, shape: MessageShape, node: int) -> int:
    """The null count that a field node gives."""
    try:
        nulls: int = _TWO_I64.unpack_from(data, PREFIX_BYTES + shape.nodes_at + node * _STRUCT_BYTES)[1]
    except struct.error:
        raise InvalidBatch("the Arrow message's metadata points outside of itself") from None
    return nulls


def misfit(data: memoryview, shape: MessageShape, columns: Sequence[tuple[str, int, int]]) -> str | None:
    """The first column whose claims cannot be true, for an error message once Arrow has refused the whole.

    `columns` has the name, the number of field nodes and the number of buffers of each. Arrow says what is wrong with a
    message, and not always where.
    """
    try:
        return _first_misfit(data, shape, columns)
    except struct.error:
        return None


def _first_misfit(data: memoryview, shape: MessageShape, columns: Sequence[tuple[str, int, int]]) -> str | None:
    body_bytes = len(data) - shape.body_at
    nodes_at, buffers_at = PREFIX_BYTES + shape.nodes_at, PREFIX_BYTES + shape.buffers_at
    for name, nodes, buffers in columns:
        rows, nulls = _TWO_I64.unpack_from(data, nodes_at)
        if rows != shape.rows or not 0 <= nulls <= rows:
            return name
        for number in range(buffers):
            offset, length = _TWO_I64.unpack_from(data, buffers_at + number * _STRUCT_BYTES)
            if offset < 0 or offset % 8 or not 0 <= length <= body_bytes - offset:
                return name
        nodes_at += nodes * _STRUCT_BYTES
        buffers_at += buffers * _STRUCT_BYTES
    return None
