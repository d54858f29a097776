"""Readers of Avro's records, and of unions with null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.schemas.avro.columns import walking
from sealane.schemas.avro.columns.cursor import Cursor
from sealane.schemas.avro.columns.scalars import Reader


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

    def walk(self, data: bytes, at: int) -> int:
        for _, reader in self.fields:
            at = reader.walk(data, at)
        return at


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

    def walk(self, data: bytes, at: int) -> int:
        place, at = walking.number(data, at)
        return self.other.walk(data, at) if place == 1 - self.null_place else at
