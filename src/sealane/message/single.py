"""A batch of one plain message, made and checked without Arrow: what an application that publishes one at a time sends.

Building and opening such a batch with Arrow takes a good part of the time that it takes to store it. Its layout is in
its metadata, which is the same to the last bit for all messages of one length, so Arrow is asked about it once; what is
left to check of each are two offsets and a time. Whatever is unusual is left to the general way, which also knows how
to say what is wrong.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from sealane.message.columns import kept_schema
from sealane.message.ipc_message import PREFIX_BYTES, body_length_at, inspect
from sealane.message.limits import Limits
from sealane.message.schema import ALL_OPTIONAL, TIME_US_MAX

_NODE = struct.Struct("<qq")
_LENGTH = struct.Struct("<q")
_BUFFER_LIST = struct.Struct("<14q")
_TWO_OFFSETS = struct.Struct("<ii")
_TIME = struct.Struct("<Q")
_SCHEMA = kept_schema(ALL_OPTIONAL)
_NODES = 3
_BUFFERS = 7
_FIXED_BYTES = 16 + 8 + 2 * 4
"""What a message takes beside its payload: id, creation and the payload's two offsets."""
_METADATA_BYTES = 1024
"""Longer metadata is not that of one plain message."""
SINGLE_BYTES = 64 << 10
"""For larger messages the time that this saves is nothing beside the time that they take."""


class Single(NamedTuple):
    """The one plain message of a batch, and where it is in the Arrow message."""

    nbytes: int
    created_us: int
    id_at: int
    payload_at: int
    payload_bytes: int


class _Layout(NamedTuple):
    """Where things are in the Arrow message."""

    id_at: int
    offsets_at: int
    payload_at: int
    payload_bytes: int
    created_at: int


def make_single(identity: bytes, payload: bytes, created_us: int) -> tuple[bytes, Single]:
    """The Arrow message with the columns id, payload and created of one message, to the last bit as Arrow writes it."""
    length = len(payload)
    created_at = 24 + (length + 7 & ~7)
    template = _template()
    head = bytearray(template.head)
    _LENGTH.pack_into(head, template.body_length_at, created_at + 8)
    _BUFFER_LIST.pack_into(
        head, template.buffers_at, 0, 0, 0, 16, 16, 0, 16, 8, 24, length, created_at, 0, created_at, 8
    )
    offsets = _TWO_OFFSETS.pack(0, length)
    padding = bytes(-length % 8)
    encoded = b"".join((head, identity, offsets, payload, padding, _TIME.pack(created_us)))
    body_at = len(head)
    return encoded, Single(_FIXED_BYTES + length, created_us, body_at, body_at + 24, length)


class _Template(NamedTuple):
    """Prefix and metadata of the Arrow message of one plain message, and where in them its lengths go."""

    head: bytes
    body_length_at: int
    buffers_at: int


@lru_cache(maxsize=1)
def _template() -> _Template:
    values = (bytes(16), b"", 0)
    columns = [pa.array([value], field.type) for value, field in zip(values, _SCHEMA, strict=True)]
    whole = pa.RecordBatch.from_arrays(columns, schema=_SCHEMA).serialize().to_pybytes()
    shape = inspect(memoryview(whole))
    flat = memoryview(whole)[PREFIX_BYTES : shape.body_at]
    return _Template(whole[: shape.body_at], PREFIX_BYTES + body_length_at(flat), PREFIX_BYTES + shape.buffers_at)


def check_single(data: memoryview, limits: Limits) -> Single | None:
    """What is known of the one plain message in this Arrow message; None: look at it in the general way.

    `data` has the columns id, payload and created.
    """
    if not PREFIX_BYTES <= len(data) <= SINGLE_BYTES:
        return None
    metadata_bytes = int.from_bytes(data[4:PREFIX_BYTES], "little")
    if metadata_bytes > _METADATA_BYTES:
        return None
    layout = _layout(bytes(data[: PREFIX_BYTES + metadata_bytes]), len(data))
    if layout is None:
        return None
    start, stop = _TWO_OFFSETS.unpack_from(data, layout.offsets_at)
    (created_us,) = _TIME.unpack_from(data, layout.created_at)
    if start != 0 or not 0 <= stop <= min(layout.payload_bytes, limits.payload_bytes_max) or created_us > TIME_US_MAX:
        return None
    nbytes = _FIXED_BYTES + stop
    if nbytes > limits.batch_bytes_max:
        return None
    return Single(nbytes, created_us, layout.id_at, layout.payload_at, stop)


@lru_cache(maxsize=1024)
def _layout(head: bytes, data_bytes: int) -> _Layout | None:
    """The layout of one plain message, if that is what this is the head of and everything lies inside of the data."""
    body_at = len(head)
    # Zeros stand in for the body: an empty payload, and a moment in 1970. What Arrow accepts with them it accepts with
    # any other body whose offsets and time are checked.
    stand_in = head + bytes(data_bytes - body_at)
    shape = inspect(memoryview(stand_in))
    try:
        pa.ipc.read_record_batch(pa.py_buffer(stand_in), _SCHEMA).validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    if (shape.rows, shape.nodes, shape.buffers) != (1, _NODES, _BUFFERS):
        return None
    nodes = [_NODE.unpack_from(head, PREFIX_BYTES + shape.nodes_at + place * _NODE.size) for place in range(_NODES)]
    if any(node != (1, 0) for node in nodes):
        return None
    buffers = [
        _NODE.unpack_from(head, PREFIX_BYTES + shape.buffers_at + place * _NODE.size) for place in range(_BUFFERS)
    ]
    body_bytes = data_bytes - body_at
    if any(at < 0 or at % 8 or length < 0 or at + length > body_bytes for at, length in buffers):
        return None
    id_nulls, ids, payload_nulls, offsets, payloads, created_nulls, created = buffers
    if id_nulls[1] or payload_nulls[1] or created_nulls[1]:
        return None
    if ids[1] < 16 or offsets[1] < _TWO_OFFSETS.size or created[1] < _TIME.size:
        return None
    return _Layout(body_at + ids[0], body_at + offsets[0], body_at + payloads[0], payloads[1], body_at + created[0])
