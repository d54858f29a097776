"""Readers of Avro's types that hold others: records, arrays, maps, and unions with null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.spark.values.avro.cursor import Cursor, Int64s, Rows
from sealane.spark.values.avro.scalars import BY_NAME, Reader

_KEYS = BY_NAME["string"]


@dataclass(frozen=True)
class Record:
    fields: tuple[tuple[str, Reader], ...]

    @property
    def arrow_type(self) -> pa.StructType:
        return pa.struct([(name, reader.arrow_type) for name, reader in self.fields])

    @property
    def bytes_min(self) -> int:
        return sum(reader.bytes_min for _, reader in self.fields)

    def read(self, cursor: Cursor) -> pa.Array:
        columns = [reader.read(cursor) for _, reader in self.fields]
        return pa.Array.from_buffers(self.arrow_type, len(cursor), [None], children=columns)


@dataclass(frozen=True)
class Nullable:
    """A union of null and one other type, in either order."""

    null_place: int
    other: Reader
    bytes_min = 1

    @property
    def arrow_type(self) -> pa.DataType:
        return self.other.arrow_type

    def read(self, cursor: Cursor) -> pa.Array:
        places = cursor.longs()
        is_there = places == 1 - self.null_place
        cursor.refuse(~is_there & (places != self.null_place))
        if is_there.all():
            return self.other.read(cursor)
        rows = np.flatnonzero(is_there)
        part = cursor.of(rows)
        values = self.other.read(part)
        cursor.put(rows, part)
        return values.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


@dataclass(frozen=True)
class Array:
    item: Reader
    bytes_min = 1

    @property
    def arrow_type(self) -> pa.ListType:
        return pa.list_(self.item.arrow_type)

    def read(self, cursor: Cursor) -> pa.Array:
        starts, (items,) = _blocks(cursor, lambda part: [self.item.read(part)], self.item.bytes_min)
        offsets = pa.py_buffer(starts.astype(np.int32))
        return pa.Array.from_buffers(self.arrow_type, len(cursor), [None, offsets], children=[items])


@dataclass(frozen=True)
class Map:
    """Names and values; of a name that is there twice the last counts."""

    value: Reader
    bytes_min = 1

    @property
    def arrow_type(self) -> pa.MapType:
        return pa.map_(pa.utf8(), self.value.arrow_type)

    def read(self, cursor: Cursor) -> pa.Array:
        starts, (keys, values) = _blocks(
            cursor, lambda part: [_KEYS.read(part), self.value.read(part)], _KEYS.bytes_min + self.value.bytes_min
        )
        kept = _last_of_each(starts, keys)
        if len(kept) < len(keys):
            taken = pa.array(kept)
            keys, values = keys.take(taken), values.take(taken)
            starts = np.searchsorted(kept, starts)
        offsets = pa.array(starts.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, keys, values).cast(self.arrow_type)


_Items = list[pa.Array]


def _blocks(cursor: Cursor, read: Callable[[Cursor], _Items], bytes_min: int) -> tuple[Int64s, _Items]:
    """The items of each row, all of the first row before those of the second: where each row's begin, and they.

    The first item of all rows is read at once, then the second of those that have one, and so on. A block that says it
    has more items than bytes are left for is refused, so that no length takes more memory than its payload did.
    """
    rows = np.arange(len(cursor))
    part = cursor.of(rows)
    left = np.zeros(len(cursor), dtype=np.int64)
    read_rows: list[Rows] = []
    rounds: list[_Items] = []
    while True:
        between = np.flatnonzero(left == 0)
        if between.size:
            _begin_block(part, left, between, bytes_min)
            goes_on = left > 0
            cursor.put(rows, part)
            rows, part, left = rows[goes_on], part.of(np.flatnonzero(goes_on)), left[goes_on]
        if not rows.size:
            break
        read_rows.append(rows)
        rounds.append(read(part))
        left = np.where(part.ok, left - 1, 0)
    if not rounds:
        return np.zeros(len(cursor) + 1, dtype=np.int64), read(part)
    of_rows = np.concatenate(read_rows)
    starts = np.concatenate(([0], np.cumsum(np.bincount(of_rows, minlength=len(cursor)))))
    order = pa.array(np.argsort(of_rows, kind="stable"))
    return starts, [pa.concat_arrays(arrays).take(order) for arrays in zip(*rounds, strict=True)]


def _begin_block(part: Cursor, left: Int64s, rows: Rows, bytes_min: int) -> None:
    """Read how many items follow in these rows; none is the end."""
    heads = part.of(rows)
    counts = heads.longs()
    sized = np.flatnonzero(counts < 0)
    if sized.size:
        # The block says how many bytes it has, so that others can skip it; where it ends is known without.
        with_size = heads.of(sized)
        with_size.longs()
        heads.put(sized, with_size)
        counts = np.abs(counts)
    heads.refuse((counts < 0) | (counts > (heads.end - heads.at) // bytes_min))
    left[rows] = np.where(heads.ok, counts, 0)
    part.put(rows, heads)


def _last_of_each(starts: Int64s, keys: pa.Array) -> Rows:
    """Which entries to keep, in their order, so that each row has a key once."""
    of_rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    both = of_rows * max(1, len(encoded.dictionary)) + codes
    _, first_from_behind = np.unique(both[::-1], return_index=True)
    return np.sort(len(both) - 1 - first_from_behind)
