"""A look into an Arrow IPC record-batch message before Arrow reads it.

Arrow trusts a few things of a message that a hostile sender chooses: that its buffers may be decompressed, to any size,
and that its row count is worth believing. This reads just those from the message's flatbuffer, every access checked.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sealane.errors import InvalidBatch

PREFIX_BYTES = 8
_CONTINUATION = 0xFFFFFFFF
_RECORD_BATCH = 3
_HEADER_TYPES = {
    0: "nothing",
    1: "a schema",
    2: "a dictionary batch",
    3: "a record batch",
    4: "a tensor",
    5: "a sparse tensor",
}

_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_PREFIX = struct.Struct("<II")

# Places of the fields in their vtables, from format/Message.fbs.
_MESSAGE_HEADER_TYPE, _MESSAGE_HEADER, _MESSAGE_BODY_LENGTH = 1, 2, 3
_BATCH_LENGTH, _BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION, _BATCH_VARIADIC = 0, 1, 2, 3, 4


class MessageShape(NamedTuple):
    rows: int
    nodes: int
    buffers: int
    compressed: bool


def inspect(data: memoryview) -> MessageShape:
    """The shape of the one record-batch message that `data` holds from end to end; `InvalidBatch` if it does not."""
    if len(data) < PREFIX_BYTES:
        raise InvalidBatch(f"the Arrow message is cut off after {len(data)} bytes")
    continuation, metadata_bytes = _PREFIX.unpack_from(data)
    if continuation != _CONTINUATION:
        raise InvalidBatch("the Arrow message does not start with the IPC continuation marker")
    if metadata_bytes % 8 or not PREFIX_BYTES <= metadata_bytes <= len(data) - PREFIX_BYTES:
        raise InvalidBatch(f"the Arrow message claims {metadata_bytes:,} bytes of metadata, {len(data):,} are there")
    flat = data[PREFIX_BYTES : PREFIX_BYTES + metadata_bytes]
    try:
        shape, body_bytes = _read(flat)
    except (struct.error, IndexError):
        raise InvalidBatch("the Arrow message's metadata points outside of itself") from None
    body_there = len(data) - PREFIX_BYTES - metadata_bytes
    if body_bytes != body_there:
        raise InvalidBatch(f"the Arrow message claims a body of {body_bytes:,} bytes, {body_there:,} are there")
    return shape


def _read(flat: memoryview) -> tuple[MessageShape, int]:
    message = _U32.unpack_from(flat, 0)[0]
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
    shape = MessageShape(
        rows,
        _vector_length(flat, _field(flat, header, _BATCH_NODES)),
        _vector_length(flat, _field(flat, header, _BATCH_BUFFERS)),
        bool(_field(flat, header, _BATCH_COMPRESSION)),
    )
    if _field(flat, header, _BATCH_VARIADIC):
        raise InvalidBatch("the Arrow message has variadic buffers, which no column of a message batch has")
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


def _vector_length(flat: memoryview, at: int) -> int:
    if not at:
        return 0
    length: int = _U32.unpack_from(flat, at + _U32.unpack_from(flat, at)[0])[0]
    return length
