"""From clean rows of a topic to rows of its tables, a batch at a time; each row is judged by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.bodies import document_of, written
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.typed.columns import MESSAGE_COLUMNS, MISFIT, ROW, as_columns, columns_of
from sealane.pipeline.typed.definitions import message_columns, row_columns
from sealane.pipeline.typed.documents import fitted
from sealane.pipeline.typed.numbers_in_columns import without_numbers
from sealane.pipeline.typed.versions import TypedVersion
from sealane.spark.values.avro_values import AvroValues
from sealane.spark.values.json_values import JsonValues

WANTED = ("id", "partition", "offset", "created", "key", "body", "body_format", "sealed_by")
"""What is read of the clean table."""
ROWS_AT_ONCE = 50_000
"""Of payloads that are any number of rows: each is longer with what it has of its message."""
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
    """As the columns of the table have them; a list of such where a payload is any number of rows."""


class _Reading(NamedTuple):
    known: int
    """How much of a payload it knows, in fields, where that tells which of several is right."""
    table: _Table
    read: _Read


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
                yield from table.parts(batch, part)
                left = _without(left, part.rows)
        others, several = self._other_parts(bodies, left[~is_json[left]])
        for table, part in others:
            yield from table.parts(batch, part)
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

    def _other_parts(self, bodies: pa.Array, rows: Rows) -> tuple[list[tuple[_Table, _Read]], Rows]:
        """Of what reads a row, that counts which knows most of it. What two of these read, and read differently, has no
        values: the second answer is which rows these are.
        """
        if not len(rows):
            return [], rows
        readings = sorted(self._readings(bodies, rows), key=lambda reading: reading.known, reverse=True)
        taken = several = np.empty(0, np.int64)
        parts = []
        for _, group in groupby(readings, key=lambda reading: reading.known):
            alike = [(table, _less(read, taken)) for _, table, read in group]
            for (table, read), (other, before) in combinations(alike, 2):
                several = np.union1d(several, _differing(table, read, other, before))
            taken = np.union1d(taken, several)
            for table, read in alike:
                parts.append((table, _less(read, taken)))
                taken = np.union1d(taken, read.rows)
        return parts, several

    def _readings(self, bodies: pa.Array, rows: Rows) -> Iterator[_Reading]:
        """All that a row may be; the newest first.

        Bare Avro, and an Arrow record batch without its schema, do not tell what they were written with. A stream of
        Arrow may have more fields than a schema asks for, so the schema that asks for most of them knows it best.
        """
        some = bodies.take(pa.array(rows))
        for table in self._tables:
            for values in table.avro:
                yield _Reading(0, table, _sound(rows, *values.read(some), table.of_values))
            for columns in table.arrow:
                values, is_sound = columns.read(some)
                read = _Read(rows[is_sound], table.of_rows(values.filter(pa.array(is_sound))))
                yield _Reading(columns.known, table, read)
        yield from self._protobuf_readings(bodies, rows)

    def _protobuf_readings(self, bodies: pa.Array, rows: Rows) -> Iterator[_Reading]:
        """Fields have numbers, and the newest schema that knows them all is taken; if none does, the newest by which
        those that are unknown may be there.
        """
        for passes in (False, True):
            for table in self._tables:
                for columns in table.protobuf:
                    if not len(rows):
                        return
                    values, is_sound = columns.read(bodies.take(pa.array(rows)), passes=passes)
                    read = _Read(rows[is_sound], table.of_values(values.filter(pa.array(is_sound))))
                    rows = _without(rows, read.rows)
                    yield _Reading(0, table, read)


class _Table:
    def __init__(self, version: TypedVersion, numbers: Numbers) -> None:
        self.number = version.number
        self.has_rows = version.has_rows
        self.fields = version.fields_type
        self.columns = columns_of(self.fields)
        self.schema = version.row_schema
        formats = [definition.format for definition in version.definitions]
        newest_first = version.definitions[::-1]
        self.json = JsonValues(version.fields) if "json" in formats else None
        self.avro = [AvroValues(each.text) for each in newest_first if each.format == "avro"]
        self.protobuf = [message_columns(each) for each in newest_first if each.format == "protobuf"]
        self.arrow = [row_columns(each) for each in newest_first if each.format == "arrow"]
        self._numbers = numbers

    def of_json(self, values: pa.Array) -> pa.Array:
        """Values as the columns have them: numbers were hashed when the body was cleaned."""
        return as_columns(values, self.fields, self.columns)

    def of_values(self, values: pa.Array) -> pa.Array:
        """The same of values that nobody has looked into before."""
        return as_columns(without_numbers(values, self._numbers), self.fields, self.columns)

    def of_rows(self, lists: pa.Array) -> pa.Array:
        """The same of payloads that are any number of rows."""
        return as_columns(without_numbers(lists, self._numbers), pa.list_(self.fields), pa.list_(self.columns))

    def parts(self, batch: pa.RecordBatch, read: _Read) -> Iterator[Part]:
        """Rows of messages that were read; where those are any number of rows, some at a time."""
        if not pa.types.is_list(read.values.type):
            yield self._part(batch, read.rows, read.values.flatten())
            return
        offsets = np.asarray(read.values.offsets)
        for start in range(int(offsets[0]), int(offsets[-1]), ROWS_AT_ONCE):
            places = np.arange(start, min(start + ROWS_AT_ONCE, int(offsets[-1])))
            messages = np.searchsorted(offsets, places, side="right") - 1
            values = read.values.values.slice(start, len(places)).flatten()
            numbers = pa.array(places - offsets[messages], ROW.type)
            yield self._part(batch, read.rows[messages], values, numbers=numbers)

    def misfits(self, batch: pa.RecordBatch, rows: Rows, is_several: npt.NDArray[np.bool_]) -> Part:
        nothing = [pa.nulls(len(rows), column.type) for column in self.columns]
        return self._part(batch, rows, nothing, misfit=pc.if_else(pa.array(is_several), SEVERAL, NO_VALUES))

    def _part(
        self,
        batch: pa.RecordBatch,
        rows: Rows,
        values: list[pa.Array],
        *,
        numbers: pa.Array | None = None,
        misfit: pa.Array | None = None,
    ) -> Part:
        """`numbers`: of the rows within their payloads."""
        places = pa.array(rows)
        columns = [batch[field.name].take(places).cast(field.type) for field in MESSAGE_COLUMNS]
        columns += values
        if self.has_rows:
            columns.append(pa.nulls(len(rows), ROW.type) if numbers is None else numbers)
        columns.append(pa.nulls(len(rows), MISFIT.type) if misfit is None else misfit)
        return Part(self.number, pa.RecordBatch.from_arrays(columns, schema=self.schema))


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


def _less(read: _Read, taken: Rows) -> _Read:
    """The same without rows that something else has."""
    is_new = ~np.isin(read.rows, taken)
    return read if is_new.all() else _Read(read.rows[is_new], read.values.filter(pa.array(is_new)))


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
