"""From clean rows of a topic to rows of its tables, a batch at a time; each row is judged by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.bodies import document_of, written
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.typed.columns import MESSAGE_COLUMNS, MISFIT, as_columns, columns_of, row_schema
from sealane.pipeline.typed.documents import fitted
from sealane.pipeline.typed.numbers_in_columns import without_numbers
from sealane.pipeline.typed.versions import TypedVersion
from sealane.spark.values.avro_values import AvroValues
from sealane.spark.values.json_values import JsonValues

WANTED = ("id", "partition", "offset", "created", "key", "body", "body_format", "sealed_by")
"""What is read of the clean table."""
NO_VALUES = "its values do not fit the columns; clean/messages has its body"
SEVERAL = "versions of the schema differ in what it says, and which one it was written with is not known"

Rows = npt.NDArray[np.int64]
"""Places in a batch."""


class Part(NamedTuple):
    """Rows of one table."""

    version: int
    batch: pa.RecordBatch


class _Read(NamedTuple):
    rows: Rows
    values: pa.Array
    """As the columns of the table have them."""


class TopicRows:
    """Makes rows of a topic's tables; on the machine that writes them."""

    def __init__(self, versions: Sequence[TypedVersion], numbers: Numbers) -> None:
        """`versions`, at least one, the oldest first."""
        newest_first = sorted(versions, key=lambda version: version.number, reverse=True)
        self._tables = [_Table(version, numbers) for version in newest_first]

    def of(self, batch: pa.RecordBatch) -> Iterator[Part]:
        """Those that have a body in the open, each in one of the tables: the newest that can have it. One that none can
        have is in the newest, without values.
        """
        is_open = pc.and_(batch["body"].is_valid(), batch["sealed_by"].is_null())
        formats = pc.fill_null(batch["body_format"], "")
        rows = _rows(pc.and_(is_open, pc.not_equal(formats, "sealed-end-to-end")))
        is_json = np.asarray(pc.equal(formats, "json"))
        bodies = batch["body"].cast(pa.binary())
        left = rows
        for read in (self._json_parts, self._slow_json_parts):
            for table, part in read(bodies, left[is_json[left]]):
                yield table.part(batch, part)
                left = _without(left, part.rows)
        avro, several = self._avro_parts(bodies, left[~is_json[left]])
        for table, part in avro:
            yield table.part(batch, part)
            left = _without(left, part.rows)
        if len(left):
            yield self._tables[0].misfits(batch, left, np.isin(left, several))

    def _json_parts(self, bodies: pa.Array, rows: Rows) -> Iterator[tuple[_Table, _Read]]:
        for table in self._tables:
            if table.json is not None and len(rows):
                read = _sound(rows, *table.json.read(bodies.take(pa.array(rows))), table.of_json)
                rows = _without(rows, read.rows)
                yield table, read

    def _slow_json_parts(self, bodies: pa.Array, rows: Rows) -> Iterator[tuple[_Table, _Read]]:
        """What only looks as if it did not fit: `1.0` is a whole number; and what a name calls a phone has a column of
        texts, also if it was too short to be one and stayed a number.
        """
        for table in self._tables:
            if table.json is not None and len(rows):
                documents = (document_of(body) for body in bodies.take(pa.array(rows)).to_pylist())
                again = pa.array([written(fitted(document, table.fields)) for document in documents], pa.binary())
                read = _sound(rows, *table.json.read(again), table.of_json)
                rows = _without(rows, read.rows)
                yield table, read

    def _avro_parts(self, bodies: pa.Array, rows: Rows) -> tuple[list[tuple[_Table, _Read]], Rows]:
        """Bare Avro does not tell what it was written with. What two schemas read, and read differently, has no values:
        the second answer is which rows these are.
        """
        if not len(rows):
            return [], rows
        reads: list[tuple[_Table, _Read]] = []
        several = np.empty(0, np.int64)
        for table in self._tables:
            for values in table.avro:
                read = _sound(rows, *values.read(bodies.take(pa.array(rows))), table.of_avro)
                for other, before in reads:
                    several = np.union1d(several, _differing(table, read, other, before))
                reads.append((table, read))
        taken = several
        parts = []
        for table, read in reads:
            new = ~np.isin(read.rows, taken)
            taken = np.union1d(taken, read.rows)
            parts.append((table, _Read(read.rows[new], read.values.filter(pa.array(new)))))
        return parts, several


class _Table:
    def __init__(self, version: TypedVersion, numbers: Numbers) -> None:
        self.number = version.number
        self.fields = version.fields_type
        self.columns = columns_of(self.fields)
        self.schema = row_schema(self.columns)
        formats = [definition.format for definition in version.definitions]
        self.json = JsonValues(version.fields) if "json" in formats else None
        self.avro = [AvroValues(each.text) for each in reversed(version.definitions) if each.format == "avro"]
        self._numbers = numbers

    def of_json(self, values: pa.Array) -> pa.Array:
        """Values as the columns have them: numbers were hashed when the body was cleaned."""
        return as_columns(values, self.fields, self.columns)

    def of_avro(self, values: pa.Array) -> pa.Array:
        """The same of values that nobody has looked into before."""
        return as_columns(without_numbers(values, self._numbers), self.fields, self.columns)

    def part(self, batch: pa.RecordBatch, read: _Read) -> Part:
        return self._part(batch, read.rows, read.values.flatten(), pa.nulls(len(read.rows), MISFIT.type))

    def misfits(self, batch: pa.RecordBatch, rows: Rows, is_several: npt.NDArray[np.bool_]) -> Part:
        nothing = [pa.nulls(len(rows), column.type) for column in self.columns]
        return self._part(batch, rows, nothing, pc.if_else(pa.array(is_several), SEVERAL, NO_VALUES))

    def _part(self, batch: pa.RecordBatch, rows: Rows, values: list[pa.Array], misfit: pa.Array) -> Part:
        places = pa.array(rows)
        message = [batch[field.name].take(places).cast(field.type) for field in MESSAGE_COLUMNS]
        return Part(self.number, pa.RecordBatch.from_arrays([*message, *values, misfit], schema=self.schema))


def _rows(mask: pa.Array) -> Rows:
    return np.flatnonzero(np.asarray(mask)).astype(np.int64)


def _without(rows: Rows, others: Rows) -> Rows:
    return np.setdiff1d(rows, others, assume_unique=True)


def _sound(rows: Rows, values: pa.Array, corrupt: pa.Array, columns: Callable[[pa.Array], pa.Array]) -> _Read:
    """The rows that were read."""
    is_sound = corrupt.is_null()
    if corrupt.null_count < len(corrupt):
        values = values.filter(is_sound)
    return _Read(rows[np.asarray(is_sound)], columns(values))


def _differing(table: _Table, read: _Read, other: _Table, before: _Read) -> Rows:
    """The rows that both have read, and not alike."""
    both, here, there = np.intersect1d(read.rows, before.rows, assume_unique=True, return_indices=True)
    if not len(both) or table.number != other.number:
        return both
    one, two = read.values.take(pa.array(here)), before.values.take(pa.array(there))
    if one.equals(two):
        return np.empty(0, np.int64)
    # As text: what is no number is unlike itself.
    alike = [repr(left) == repr(right) for left, right in zip(one.to_pylist(), two.to_pylist(), strict=True)]
    return both[~np.array(alike)]
