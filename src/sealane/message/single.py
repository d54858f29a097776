"""A batch of one plain message, checked without Arrow: what an application that publishes one at a time sends.

Opening such a batch with Arrow takes a good part of the time that it takes to store it. Its layout is in its metadata,
which is the same to the last bit for all messages of one length, so Arrow is asked about it once; what is left to check
of each are two offsets and a time. Whatever is unusual is left to the general way, which also knows how to say what is
wrong.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from sealane.message.batch import ALL_OPTIONAL
from sealane.message.columns import kept_schema
from sealane.message.ipc_message import PREFIX_BYTES, inspect
from sealane.message.limits import Limits
from sealane.message.schema import TIME_US_MAX

_NODE = struct.Struct("<qq")
_TWO_OFFSETS = struct.Struct("<ii")
_TIME = struct.Struct("<Q")
_NODES = 3
_BUFFERS = 7
_FIXED_BYTES = 16 + 8 + 2 * 4
"""What a message takes beside its payload: id, creation and the payload's two offsets."""
_METADATA_BYTES = 1024
"""Longer metadata is not that of one plain message."""
_DATA_BYTES = 64 << 10
"""For larger messages the time that this saves is nothing beside the time that they take."""


class Single(NamedTuple):
    nbytes: int
    created_us: int


class _Layout(NamedTuple):
    """Where things are in the Arrow message."""

    offsets_at: int
    payload_bytes: int
    created_at: int


def check_single(data: memoryview, limits: Limits) -> Single | None:
    """What is known of the one plain message in this Arrow message; None: look at it in the general way.

    `data` has the columns id, payload and created.
    """
    if not PREFIX_BYTES <= len(data) <= _DATA_BYTES:
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
    return Single(nbytes, created_us) if nbytes <= limits.batch_bytes_max else None


@lru_cache(maxsize=1024)
def _layout(head: bytes, data_bytes: int) -> _Layout | None:
    """The layout of one plain message, if that is what this is the head of and everything lies inside of the data."""
    body_at = len(head)
    # Zeros stand in for the body: an empty payload, and a moment in 1970. What Arrow accepts with them it accepts with
    # any other body whose offsets and time are checked.
    stand_in = head + bytes(data_bytes - body_at)
    shape = inspect(memoryview(stand_in))
    try:
        pa.ipc.read_record_batch(pa.py_buffer(stand_in), kept_schema(ALL_OPTIONAL)).validate(full=True)
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
    return _Layout(body_at + offsets[0], payloads[1], body_at + created[0])
