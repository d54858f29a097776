"""Columns whose content is known from their length: all null, or one value throughout.

Most batches have no key, no headers, no expiry. Their columns are slices of one array that is made once, so that a
message which does not use a column pays next to nothing for it, in time or in memory.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from sealane.message.schema import COLUMNS, ENVELOPE, PRIORITY, PRIORITY_DEFAULT, SCHEMA, TIME_TYPE

_LENGTHS_CACHED = 1024
_GROWN_MIN = 4096

_types: list[pa.DataType] = [SCHEMA.field(place).type for place in range(COLUMNS)]
_nulls: dict[int, pa.Array] = {}


def _grown(length: int) -> int:
    """The next power of two: a cached array is replaced a few times in a process's life, not at every new length."""
    return max(_GROWN_MIN, 1 << (length - 1).bit_length())


def _all_default(length: int) -> pa.Array:
    # Arrow loads pandas, if there is one, for the first array that it makes of another library's: not of bytes.
    return pa.Array.from_buffers(pa.int8(), length, [None, pa.py_buffer(bytes([PRIORITY_DEFAULT]) * length)], 0)


_priorities: list[pa.Array] = [_all_default(_GROWN_MIN)]


@lru_cache(maxsize=_LENGTHS_CACHED)
def null_column(place: int, length: int) -> pa.Array:
    """A column of nulls, as a slice of a shared array."""
    shared = _nulls.get(place)
    if shared is None or len(shared) < length:
        shared = _nulls[place] = pa.nulls(_grown(length), _types[place])
    return shared.slice(0, length)


@lru_cache(maxsize=_LENGTHS_CACHED)
def default_priorities(length: int) -> pa.Array:
    """A priority column with nothing but the default, as a slice of a shared array."""
    if len(_priorities[0]) < length:
        _priorities[0] = _all_default(_grown(length))
    return _priorities[0].slice(0, length)


def constant_times(time_us: int, length: int) -> pa.Array:
    """A time column with one value throughout."""
    data = time_us.to_bytes(8, "little", signed=True) if length == 1 else np.full(length, time_us, dtype="<i8")
    return pa.Array.from_buffers(TIME_TYPE, length, [None, pa.py_buffer(data)], 0)


@lru_cache(maxsize=64)
def kept_places(absent: int) -> tuple[int, ...]:
    """The columns that are left when these, a bit each, are left out."""
    return tuple(place for place in range(COLUMNS) if not absent >> place & 1)


@lru_cache(maxsize=64)
def kept_schema(absent: int) -> pa.Schema:
    """The message schema without these columns."""
    return pa.schema([SCHEMA.field(place) for place in kept_places(absent)])


def repeated(value: bytes, length: int) -> pa.Array:
    """A binary column with one value throughout."""
    offsets = np.arange(length + 1, dtype=np.int32) * np.int32(len(value))
    return pa.Array.from_buffers(pa.binary(), length, [None, pa.py_buffer(offsets), pa.py_buffer(value * length)], 0)


def complete(kept: pa.RecordBatch, absent: int, envelope: bytes | None = None) -> pa.RecordBatch:
    """All columns: the absent ones filled in from shared memory, and the envelope of all messages if there is one."""
    if not absent:
        return kept
    rows = kept.num_rows
    present = iter(kept.columns)
    columns = []
    for place in range(COLUMNS):
        if not absent >> place & 1:
            columns.append(next(present))
        elif place == ENVELOPE and envelope is not None:
            columns.append(repeated(envelope, rows))
        else:
            columns.append(default_priorities(rows) if place == PRIORITY else null_column(place, rows))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
