"""Readers of Avro's simple types. A reader takes one value of each row of a cursor, as an Arrow array of its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.schemas.avro.columns.cursor import Cursor, Int64s
from sealane.schemas.avro.columns.walking import after_number, after_span

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
_INT_LEAST, _INT_LARGEST = -(2**31), 2**31 - 1
_MICROSECONDS = 1_000
_LONG_LARGEST = 2**63 - 1


class Reader(Protocol):
    """What one type of Avro is read by; of rows that the cursor refuses it makes any value there can be."""

    @property
    def arrow_type(self) -> pa.DataType: ...

    @property
    def bytes_min(self) -> int:
        """The fewest bytes that a value takes."""

    def read(self, cursor: Cursor) -> pa.Array: ...

    def walk(self, data: bytes, at: int) -> int:
        """Where the value ends that begins there, as `walking` says."""


@dataclass(frozen=True)
class Null:
    arrow_type = pa.null()
    bytes_min = 0

    def read(self, cursor: Cursor) -> pa.Array:
        return pa.nulls(len(cursor))

    def walk(self, data: bytes, at: int) -> int:
        return at


@dataclass(frozen=True)
class Boolean:
    arrow_type = pa.bool_()
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        found = cursor.bytes()
        cursor.refuse(found > 1)
        return pa.array(found == 1)

    def walk(self, data: bytes, at: int) -> int:
        return at + 1


@dataclass(frozen=True)
class Integer:
    """An int, also one that counts days (`arrow_type` is date32 then)."""

    arrow_type: pa.DataType
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        found = cursor.longs()
        cursor.refuse((found < _INT_LEAST) | (found > _INT_LARGEST))
        return _of_numpy(found.astype(np.int32), self.arrow_type)

    def walk(self, data: bytes, at: int) -> int:
        return after_number(data, at)


@dataclass(frozen=True)
class Long:
    """A long, also one that counts microseconds since 1970."""

    arrow_type: pa.DataType
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        return _of_numpy(cursor.longs(), self.arrow_type)

    def walk(self, data: bytes, at: int) -> int:
        return after_number(data, at)


@dataclass(frozen=True)
class Milliseconds:
    """A long that counts milliseconds since 1970; one that is too far away in microseconds is refused."""

    arrow_type: pa.DataType
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        found = cursor.longs()
        farthest = _LONG_LARGEST // _MICROSECONDS
        bad = (found > farthest) | (found < -farthest)
        cursor.refuse(bad)
        return _of_numpy(np.where(bad, 0, found) * _MICROSECONDS, self.arrow_type)

    def walk(self, data: bytes, at: int) -> int:
        return after_number(data, at)


@dataclass(frozen=True)
class Floating:
    """A float or a double."""

    arrow_type: pa.DataType
    dtype: str
    bytes_min: int

    def read(self, cursor: Cursor) -> pa.Array:
        starts = cursor.skip(self.bytes_min)
        # A row that is refused may begin too near to the end for a whole value.
        return pa.array(cursor.shared.at(starts, self.dtype))

    def walk(self, data: bytes, at: int) -> int:
        return at + self.bytes_min


@dataclass(frozen=True)
class Binary:
    arrow_type = pa.binary()
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        return cursor.shared.slices(*cursor.spans())

    def walk(self, data: bytes, at: int) -> int:
        return after_span(data, at)


@dataclass(frozen=True)
class Text:
    """A string; bytes that are no UTF-8 are refused."""

    arrow_type = pa.utf8()
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        starts, lengths = cursor.spans()
        slices = cursor.shared.slices(starts, lengths)
        texts = _as_text(slices)
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            bad = np.array([not _is_utf8(some) for some in slices.to_pylist()])
            cursor.refuse(bad)
            texts = _as_text(cursor.shared.slices(starts, np.where(bad, 0, lengths)))
        return texts

    def walk(self, data: bytes, at: int) -> int:
        return after_span(data, at)


@dataclass(frozen=True)
class Fixed:
    """That many bytes."""

    bytes_min: int
    arrow_type = pa.binary()

    def read(self, cursor: Cursor) -> pa.Array:
        starts = cursor.skip(self.bytes_min)
        return cursor.shared.slices(starts, np.where(cursor.ok, self.bytes_min, 0))

    def walk(self, data: bytes, at: int) -> int:
        return at + self.bytes_min


@dataclass(frozen=True)
class Enum:
    """One of the symbols, as text."""

    symbols: tuple[str, ...]
    arrow_type = pa.utf8()
    bytes_min = 1

    def read(self, cursor: Cursor) -> pa.Array:
        found = cursor.longs()
        bad = (found < 0) | (found >= len(self.symbols))
        cursor.refuse(bad)
        return pa.array(self.symbols, pa.utf8()).take(pa.array(np.where(bad, 0, found)))

    def walk(self, data: bytes, at: int) -> int:
        return after_number(data, at)


TEXT = Text()
BY_LOGICAL_TYPE: dict[tuple[str, str], Reader] = {
    ("int", "date"): Integer(pa.date32()),
    ("long", "timestamp-millis"): Milliseconds(TIMESTAMP),
    ("long", "timestamp-micros"): Long(TIMESTAMP),
    ("long", "local-timestamp-millis"): Milliseconds(TIMESTAMP_NTZ),
    ("long", "local-timestamp-micros"): Long(TIMESTAMP_NTZ),
}
"""By type and logical type. Another logical type is ignored, as Avro asks for: the value is what lies under it."""
BY_NAME: dict[str, Reader] = {
    "null": Null(),
    "boolean": Boolean(),
    "int": Integer(pa.int32()),
    "long": Long(pa.int64()),
    "float": Floating(pa.float32(), "<f4", 4),
    "double": Floating(pa.float64(), "<f8", 8),
    "bytes": Binary(),
    "string": TEXT,
}


def _of_numpy(values: npt.NDArray[np.int32] | Int64s, type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(values)])


def _as_text(slices: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(pa.utf8(), len(slices), slices.buffers())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
