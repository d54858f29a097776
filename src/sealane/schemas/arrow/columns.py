"""Payloads that are Arrow, as columns: each payload a list of rows, with the types that tables and Spark have.

Unsigned numbers need the next wider type, and one of 64 bits that is too large for a signed one cannot be read. Times
are UTC and have microseconds, or no zone and microseconds; of nanoseconds the whole microseconds stay. Lists of any
kind are lists. A time of day, a duration and an interval have no column, nor has a decimal of more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.message.arrow_compute import pc
from sealane.schemas.arrow.arrow_schema import ArrowSchema, Opened
from sealane.schemas.arrow.fields import refused
from sealane.schemas.by_halves import Bools, read_by_halves, spread
from sealane.schemas.last_keys import last_of_each
from sealane.schemas.paths import ANY, Step, path_of

ROWS_OF_A_BYTE = 8
"""The most rows that a byte of payload can have: a column takes a bit of each at least. Those that take nothing, as of
nulls, could have any number of rows in a few bytes."""

_DIGITS_MAX = 38
_NANOSECONDS = 1_000
"""Of a microsecond."""
_ITEMS_MAX = np.iinfo(np.int32).max
_UNREADABLE = (OverflowError, pa.ArrowInvalid)

Steps = tuple[Step, ...]


class RowColumns:
    """Reads payloads of any number of rows each."""

    def __init__(self, schema: ArrowSchema, *, leaves_out: bool = False) -> None:
        """Raises `InvalidSchema` for a field that has no column; with `leaves_out` it is read without those."""
        self._schema = schema
        self._fields = pa.struct(_column_fields(schema.schema, leaves_out))
        if not self._fields.num_fields:
            raise refused("it has no field that could be a column")
        self.arrow_type: pa.ListType = pa.list_(self._fields)
        """Of one payload."""
        self.known = _count(self._fields)
        """How many fields it reads, those within others too."""

    def read(self, payloads: pa.Array) -> tuple[pa.Array, Bools]:
        """The rows of each payload of a binary array, null where it is not sound; and which of them are."""
        found = [self._opened(payload) for payload in payloads.to_pylist()]
        is_sound = np.fromiter((each is not None for each in found), np.bool_, len(found))
        # Payloads with one schema are read together, and mostly all have one.
        groups: dict[pa.Schema, list[int]] = {}
        for place, opened in enumerate(found):
            if opened is not None:
                groups.setdefault(opened.schema, []).append(place)
        pieces: list[pa.Array] = []
        order: list[int] = []
        for places in groups.values():
            some = [opened for place in places if (opened := found[place]) is not None]
            read, is_read = read_by_halves(some, self._rows, _UNREADABLE)
            is_sound[places] = is_read
            pieces += read
            order += [place for place, was_read in zip(places, is_read.tolist(), strict=True) if was_read]
        if len(groups) <= 1:
            return spread(pieces, is_sound, self.arrow_type), is_sound
        whole = pa.concat_arrays([pa.array([], self.arrow_type), *pieces])
        places_of = np.zeros(len(found), dtype=np.int64)
        places_of[order] = np.arange(len(order))
        return whole.take(pa.array(places_of, mask=~is_sound)), is_sound

    def _opened(self, payload: bytes | None) -> Opened | None:
        found = None if payload is None else self._schema.open(payload)
        if payload is None or not isinstance(found, Opened):
            return None
        return found if _rows_in(found) <= len(payload) * ROWS_OF_A_BYTE else None

    def _rows(self, payloads: Sequence[Opened]) -> pa.Array:
        """Of payloads with one schema."""
        ends = np.cumsum([_rows_in(each) for each in payloads])
        if ends[-1] > _ITEMS_MAX:
            raise OverflowError("more rows than a column can have")
        batches = [batch for each in payloads for batch in each.batches]
        table = pa.Table.from_batches(batches, payloads[0].schema)
        columns = [_column(_joined(table[field.name]), field.type) for field in self._fields]
        rows = pa.StructArray.from_arrays(columns, fields=list(self._fields))
        offsets = pa.py_buffer(np.concatenate(([0], ends)).astype(np.int32))
        return pa.Array.from_buffers(self.arrow_type, len(payloads), [None, offsets], children=[rows])


def _rows_in(opened: Opened) -> int:
    return sum(batch.num_rows for batch in opened.batches)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _count(type: pa.DataType) -> int:
    return sum(1 + _count(type.field(place).type) for place in range(type.num_fields))


def _column_fields(fields: Sequence[pa.Field], leaves_out: bool) -> list[tuple[str, pa.DataType]]:
    found = []
    for field in fields:
        try:
            found.append((field.name, column_type(field.type, (field.name,))))
        except InvalidSchema:
            if not leaves_out:
                raise
    return found


def column_type(type: pa.DataType, steps: Steps = ()) -> pa.DataType:
    """The type of the column that has values of this type. Raises `InvalidSchema` if there is none."""
    kinds = pa.types
    if kinds.is_struct(type):
        return pa.struct([(field.name, column_type(field.type, (*steps, field.name))) for field in type])
    if _is_list(type):
        return pa.list_(column_type(type.value_type, (*steps, ANY)))
    if kinds.is_map(type):
        key = column_type(type.key_type, (*steps, ANY))
        if not (kinds.is_string(key) or kinds.is_integer(key) or kinds.is_boolean(key)):
            raise refused(f"at {path_of(steps)}: a map by {type.key_type} has no column")
        return pa.map_(key, column_type(type.item_type, (*steps, ANY)))
    found = _scalar_type(type)
    if found is None:
        raise refused(f"at {path_of(steps)}: {type} has no column")
    return found


def _scalar_type(type: pa.DataType) -> pa.DataType | None:
    kinds = pa.types
    if type in _SAME:
        return type
    if type in _WIDER:
        return _WIDER[type]
    if kinds.is_large_string(type):
        return pa.utf8()
    if kinds.is_large_binary(type) or kinds.is_fixed_size_binary(type):
        return pa.binary()
    if kinds.is_timestamp(type):
        return pa.timestamp("us", None if type.tz is None else "UTC")
    if kinds.is_decimal(type) and 1 <= type.precision <= _DIGITS_MAX and 0 <= type.scale <= type.precision:
        return pa.decimal128(type.precision, type.scale)
    return None


_SAME = frozenset(
    (
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.float32(), pa.float64(), pa.utf8(), pa.binary(), pa.date32()),
    )
)
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def _is_list(type: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type))


def _column(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values as a column of this type has them, found by their names; the array is no slice."""
    kinds = pa.types
    mask = values.is_null() if values.null_count else None
    if kinds.is_struct(wanted):
        if not wanted.num_fields:
            return pa.Array.from_buffers(wanted, len(values), values.buffers()[:1], values.null_count)
        parts = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        children = [_column(parts[field.name], field.type) for field in wanted]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if kinds.is_list(wanted):
        if not kinds.is_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        items = _column(values.values, wanted.value_type)
        return pa.Array.from_buffers(wanted, len(values), values.buffers()[:2], values.null_count, children=[items])
    if kinds.is_map(wanted):
        return _map(values, wanted)
    if kinds.is_timestamp(wanted) and values.type.unit == "ns":
        microseconds = np.asarray(pc.fill_null(values.view(pa.int64()), 0)) // _NANOSECONDS
        return pa.array(microseconds, mask=None if mask is None else np.asarray(mask)).view(wanted)
    return values if values.type == wanted else values.cast(wanted)


def _map(values: pa.Array, wanted: pa.MapType) -> pa.Array:
    """Of a key that is there twice the last counts, as everywhere; one that is null is none."""
    keys, items = _column(values.keys, wanted.key_type), _column(values.items, wanted.item_type)
    starts = np.asarray(values.offsets).astype(np.int64)
    first, stop = int(starts[0]), int(starts[-1])
    kept = last_of_each(starts - first, keys.slice(first, stop - first)) + first
    if len(kept) < len(keys):
        taken = pa.array(kept)
        keys, items = keys.take(taken), items.take(taken)
        starts = np.searchsorted(kept, starts)
    if keys.null_count:
        raise OverflowError("a key is null")
    entry = pa.struct([wanted.key_field, wanted.item_field])
    entries = pa.Array.from_buffers(entry, len(keys), [None], children=[keys, items])
    buffers = [values.buffers()[0], pa.py_buffer(starts.astype(np.int32))]
    return pa.Array.from_buffers(wanted, len(values), buffers, values.null_count, children=[entries])
