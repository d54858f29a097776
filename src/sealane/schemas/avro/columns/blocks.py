"""Readers of Avro's arrays and maps, whose items come in blocks, one after the other.

The first item of all rows is read at once, then the second of those that have one, and so on. That is fast while there
are many rows; the last few, which have the most items, are walked through to find where each item begins, and then all
of their items are read at once.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.schemas.avro.columns import walking
from sealane.schemas.avro.columns.cursor import Cursor, Int64s, Rows
from sealane.schemas.avro.columns.scalars import TEXT, Reader
from sealane.schemas.last_keys import last_of_each

FEW_ROWS = 32
"""So many cost as much to read an item of each at once as to walk through them: some tens of microseconds."""


@dataclass(frozen=True)
class Array:
    item: Reader
    bytes_min = 1

    @property
    def arrow_type(self) -> pa.ListType:
        return pa.list_(self.item.arrow_type)

    def read(self, cursor: Cursor) -> pa.Array:
        starts, (items,) = _Items((self.item,)).read(cursor)
        offsets = pa.py_buffer(starts.astype(np.int32))
        return pa.Array.from_buffers(self.arrow_type, len(cursor), [None, offsets], children=[items])

    def walk(self, data: bytes, at: int) -> int:
        return _Items((self.item,)).walk(data, at)


@dataclass(frozen=True)
class Map:
    """Names and values; of a name that is there twice the last counts."""

    value: Reader
    bytes_min = 1

    @property
    def arrow_type(self) -> pa.MapType:
        return pa.map_(pa.utf8(), self.value.arrow_type)

    def read(self, cursor: Cursor) -> pa.Array:
        starts, (keys, values) = _Items((TEXT, self.value)).read(cursor)
        kept = last_of_each(starts, keys)
        if len(kept) < len(keys):
            taken = pa.array(kept)
            keys, values = keys.take(taken), values.take(taken)
            starts = np.searchsorted(kept, starts)
        type = self.arrow_type
        entry = pa.struct([type.key_field, type.item_field])
        entries = pa.Array.from_buffers(entry, len(keys), [None], children=[keys, values])
        offsets = pa.py_buffer(starts.astype(np.int32))
        return pa.Array.from_buffers(type, len(cursor), [None, offsets], children=[entries])

    def walk(self, data: bytes, at: int) -> int:
        return _Items((TEXT, self.value)).walk(data, at)


_Columns = list[pa.Array]


@dataclass(frozen=True)
class _Items:
    """What is repeated in blocks: the readers of its parts, which together take one byte at least."""

    parts: tuple[Reader, ...]

    @property
    def bytes_min(self) -> int:
        return sum(part.bytes_min for part in self.parts)

    def read(self, cursor: Cursor) -> tuple[Int64s, _Columns]:
        """Where each row's items begin, with the end of the last; and the items, row by row.

        A block that says it has more items than bytes are left for is refused, so that no number takes more memory
        than its payload did.
        """
        rows = np.arange(len(cursor))
        part = cursor.of(rows)
        left = np.zeros(len(cursor), dtype=np.int64)
        read_rows: list[Rows] = []
        rounds: list[_Columns] = []
        while True:
            between = np.flatnonzero(left == 0)
            if between.size:
                self._begin_blocks(part, left, between)
                cursor.put(rows, part)
                goes_on = np.flatnonzero(left > 0)
                rows, part, left = rows[goes_on], part.of(goes_on), left[goes_on]
            if len(rows) <= FEW_ROWS:
                break
            read_rows.append(rows)
            rounds.append(self._columns(part))
            left = np.where(part.ok, left - 1, 0)
        of_part, columns = self._rest(part, left)
        cursor.put(rows, part)
        of_rows = np.concatenate([*read_rows, rows[of_part]])
        starts = np.concatenate(([0], np.cumsum(np.bincount(of_rows, minlength=len(cursor)))))
        if not rounds:
            return starts, columns
        order = pa.array(np.argsort(of_rows, kind="stable"))
        return starts, [pa.concat_arrays(arrays).take(order) for arrays in zip(*rounds, columns, strict=True)]

    def walk(self, data: bytes, at: int) -> int:
        """Where the last block ends."""
        return self._walk(data, at, 0, array("q"))

    def _columns(self, cursor: Cursor) -> _Columns:
        return [part.read(cursor) for part in self.parts]

    def _begin_blocks(self, part: Cursor, left: Int64s, rows: Rows) -> None:
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
        # The number that has no positive counterpart is its own, and still negative.
        heads.refuse((counts < 0) | (counts > (heads.end - heads.at) // self.bytes_min))
        left[rows] = np.where(heads.ok, counts, 0)
        part.put(rows, heads)

    def _rest(self, part: Cursor, left: Int64s) -> tuple[Rows, _Columns]:
        """All further items of a few rows, of which `left` are left in a block: the row of each, and they."""
        counts = np.zeros(len(part), dtype=np.int64)
        found = [np.empty((0, 2), dtype=np.int64)]
        for row, (at, end, count) in enumerate(zip(part.at.tolist(), part.end.tolist(), left.tolist(), strict=True)):
            places = array("q")
            try:
                part.at[row] = at + self._walk(part.shared.bytes[at:end].tobytes(), 0, count, places)
            except IndexError:
                part.ok[row] = False
                part.at[row] = end
                continue
            bounds = np.frombuffer(places, dtype=np.int64).reshape(-1, 2)
            counts[row] = len(bounds)
            found.append(bounds + at)
        rows = np.repeat(np.arange(len(part)), counts)
        starts, ends = np.concatenate(found).T.copy()
        items = Cursor(part.shared, starts, ends, np.ones(len(rows), dtype=np.bool_))
        columns = self._columns(items)
        bad = np.zeros(len(part), dtype=np.bool_)
        bad[rows[~items.ok | (items.at != items.end)]] = True
        part.refuse(bad)
        return rows, columns

    def _walk(self, data: bytes, at: int, left: int, places: array[int]) -> int:
        """Where the last block ends; `places` gets where each item begins and where it ends."""
        bytes_min = self.bytes_min
        walks = [part.walk for part in self.parts]
        size = len(data)
        while True:
            for _ in range(left):
                places.append(at)
                for walk in walks:
                    at = walk(data, at)
                if at > size:
                    raise IndexError("an item is cut off")
                places.append(at)
            left, at = walking.block(data, at, bytes_min)
            if not left:
                return at
