"""Payloads of JSON as typed columns.

msgspec checks and decodes each payload against the schema, one call of C for each in a loop of C, and columns are made
of what it returns. Beside Arrow's own JSON reader that is as fast for good payloads, and hundreds of times faster for
bad ones: Arrow's stops at the first, and cannot say which others there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.schemas.json.depth import too_deep
from sealane.spark.values.ddl import struct_of_ddl
from sealane.spark.values.json_types import python_type, read_written, written_type
from sealane.spark.values.spark_type import refused, type_of_spark_json
from sealane.spark.values.timestamps import Bools

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
"""What decoding raises: it is no JSON or not of this shape, or a text is no UTF-8."""
_MISFITS = (pa.ArrowException, OverflowError, ValueError)
"""What making a column raises for a value that its type cannot have: a decimal with too many digits."""

_Objects = list[Any]
_Build = Callable[[_Objects], tuple[pa.Array, Bools | None]]


class JsonValues:
    """Reads payloads that are one JSON object each.

    Fields are found by their exact name; one that is missing is null, one that is not in the schema is passed over, and
    of one that is there twice the last counts. Numbers that the type cannot hold make a payload corrupt, never wrong.
    """

    def __init__(self, schema: str) -> None:
        """`schema` is Spark's DDL or Spark's JSON form of a struct. Raises `InvalidOption`."""
        self._schema = schema
        self.arrow_type = _struct_of(schema)
        record = _record_of(self.arrow_type)
        self._blank = record()
        self._decode = msgspec.json.Decoder(record).decode
        self._columns = [(attrgetter(f"f{place}"), _builder(field.type)) for place, field in enumerate(self.arrow_type)]

    def __reduce__(self) -> tuple[type[JsonValues], tuple[str]]:
        return JsonValues, (self._schema,)

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """As `sealane.spark.values.Values` says."""
        records, corrupt = self._decoded(payloads)
        columns = []
        for pick, build in self._columns:
            column, misfits = _column(list(map(pick, records)), build)
            columns.append(column)
            corrupt += misfits
        is_corrupt = np.zeros(len(payloads), dtype=np.bool_)
        is_corrupt[corrupt] = True
        mask = pa.array(is_corrupt)
        value = pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=mask if corrupt else None)
        return value, pc.if_else(mask, payloads, pa.scalar(None, payloads.type))

    def _decoded(self, payloads: pa.Array) -> tuple[_Objects, list[int]]:
        """A record for each payload, blank for those that are corrupt, and which those are."""
        if payloads.null_count:
            payloads = payloads.fill_null(b"")  # no JSON either
        texts = payloads.to_pylist()
        for row in too_deep(payloads):
            texts[row] = b""
        decoding = map(self._decode, texts)
        records: _Objects = []
        corrupt: list[int] = []
        while True:
            try:
                # After an error the list has all up to there, and the iterator goes on behind it.
                records.extend(decoding)
            except _UNREADABLE:
                corrupt.append(len(records))
                records.append(self._blank)
            else:
                return records, corrupt


def _struct_of(schema: str) -> pa.StructType:
    written_as_json = schema.lstrip().startswith(("{", '"'))
    found = type_of_spark_json(schema) if written_as_json else struct_of_ddl(schema)
    if not pa.types.is_struct(found):
        raise refused(f"a payload is a JSON object, so the schema is a struct, and not {found}")
    if not found.num_fields:
        raise refused("it names no field; write for example: order_id BIGINT, amount DOUBLE")
    return found


def _record_of(type: pa.StructType) -> Any:
    """The class that a payload is decoded to; its attributes have names of their own, since a field may have any."""
    attributes = [(f"f{place}", python_type(field.type), None) for place, field in enumerate(type)]
    names = {f"f{place}": field.name for place, field in enumerate(type)}
    try:
        return msgspec.defstruct("Record", attributes, rename=names, gc=False)
    except ValueError as error:
        raise refused(f"a field has a name that cannot be read from JSON: {error}") from None


def _builder(type: pa.DataType) -> _Build:
    written = written_type(type)

    def build(objects: _Objects) -> tuple[pa.Array, Bools | None]:
        return read_written(pa.array(objects, written), type)

    return build


def _column(objects: _Objects, build: _Build) -> tuple[pa.Array, list[int]]:
    """The objects as an array, and which of them do not fit its type."""
    misfits: list[int] = []
    try:
        column, bad = build(objects)
    except _MISFITS:
        misfits += _misfits(objects, build, 0)
        for row in misfits:
            objects[row] = None
        column, bad = build(objects)
    if bad is not None:
        misfits += np.flatnonzero(bad).tolist()
    return column, misfits


def _misfits(objects: _Objects, build: _Build, first: int) -> Iterator[int]:
    """Where the objects are that cannot be built, among some of which one at least cannot; `first` is their place."""
    if len(objects) == 1:
        yield first
        return
    middle = len(objects) // 2
    for start, half in ((0, objects[:middle]), (middle, objects[middle:])):
        try:
            build(half)
        except _MISFITS:
            yield from _misfits(half, build, first + start)
