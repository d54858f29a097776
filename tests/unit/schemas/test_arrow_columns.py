"""Arrow payloads as columns: any number of rows each, the types that tables have, and payloads that are none."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sealane.errors import InvalidSchema
from sealane.schemas.arrow.arrow_schema import ArrowSchema
from sealane.schemas.arrow.columns import RowColumns, column_type


def arrow_schema(schema: pa.Schema) -> ArrowSchema:
    return ArrowSchema(base64.b64encode(schema.serialize().to_pybytes()).decode())


def stream(*batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema if schema is None else schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def bare(batch: pa.RecordBatch) -> bytes:
    return bytes(batch.serialize())


def batch(schema: pa.Schema, *rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def read(schema: pa.Schema, *payloads: bytes | None, leaves_out: bool = False) -> list[Any]:
    columns = RowColumns(arrow_schema(schema), leaves_out=leaves_out)
    values, is_sound = columns.read(pa.array(payloads, pa.binary()))
    values.validate(full=True)
    assert values.type == columns.arrow_type
    found: list[Any] = values.to_pylist()
    assert [each is not None for each in found] == is_sound.tolist()
    return found


PLAIN = pa.schema([("a", pa.int64()), ("b", pa.utf8())])


def test_a_payload_is_any_number_of_rows_with_its_schema_or_without() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": None, "b": None}]
    two = batch(PLAIN, *rows)
    assert read(PLAIN, stream(two), bare(two), b"none", None, stream(two, two), stream(schema=PLAIN)) == [
        rows,
        rows,
        None,
        None,
        rows + rows,
        [],
    ]
    assert read(PLAIN) == []


def test_columns_are_found_by_name_and_what_is_more_is_left() -> None:
    more = pa.schema([("c", pa.int8()), ("b", pa.utf8()), ("a", pa.int64())])
    less = pa.schema([("a", pa.int64())])
    payloads = (
        stream(batch(more, {"a": 1, "b": "x", "c": 2})),
        stream(batch(less, {"a": 1})),
        stream(batch(PLAIN, {"a": 2, "b": "y"})),
        stream(batch(more, {"a": 3, "b": "z", "c": 4})),
    )
    assert read(PLAIN, *payloads) == [[{"a": 1, "b": "x"}], None, [{"a": 2, "b": "y"}], [{"a": 3, "b": "z"}]]


def test_types_become_those_that_tables_have() -> None:
    then = datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC)
    inner = pa.struct([("n", pa.uint8()), ("s", pa.large_utf8())])
    schema = pa.schema(
        [
            ("u", pa.uint64()),
            ("h", pa.float16()),
            ("f", pa.binary(2)),
            ("zoned", pa.timestamp("ns", "Europe/Berlin")),
            ("local", pa.timestamp("s")),
            ("day", pa.date64()),
            ("price", pa.decimal256(10, 2)),
            ("pair", pa.list_(pa.uint16(), 2)),
            ("many", pa.large_list(inner)),
            ("by", pa.map_(pa.uint32(), inner)),
            ("within", inner),
            ("nothing", pa.null()),
        ]
    )
    row = {
        "u": 2**63 - 1,
        "h": 0.5,
        "f": b"ab",
        "zoned": then,
        "local": then.replace(tzinfo=None, microsecond=0),
        "day": date(2026, 1, 31),
        "price": Decimal("1.50"),
        "pair": [1, 2],
        "many": [{"n": 255, "s": "x"}, None],
        "by": [(4_000_000_000, {"n": 1, "s": None})],
        "within": {"n": 2, "s": "y"},
        "nothing": None,
    }
    empty = dict.fromkeys(row)
    assert read(schema, bare(batch(schema, row, empty)), bare(batch(schema, empty, row))) == [
        [row, empty],
        [empty, row],
    ]
    assert read(schema, bare(batch(schema, row | {"u": 2**63})), bare(batch(schema, row))) == [None, [row]]


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    schema = pa.schema([("m", pa.map_(pa.utf8(), pa.int64()))])
    rows: list[dict[str, Any]] = [{"m": [("a", 1), ("b", 2), ("a", 3)]}, {"m": None}, {"m": [("a", 4)]}]
    (found,) = read(schema, bare(batch(schema, *rows)))
    assert found == [{"m": [("b", 2), ("a", 3)]}, {"m": None}, {"m": [("a", 4)]}]


def test_nanoseconds_before_1970_are_those_of_their_own_microsecond() -> None:
    schema = pa.schema([("at", pa.timestamp("ns", "UTC"))])
    values = pa.array([-1, None], pa.int64()).view(schema.field("at").type)
    payload = bare(pa.RecordBatch.from_arrays([values], schema=schema))
    assert read(schema, payload) == [[{"at": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)}, {"at": None}]]


@pytest.mark.parametrize(
    "type", [pa.time64("us"), pa.duration("s"), pa.decimal256(40, 0), pa.map_(pa.binary(), pa.int64())]
)
def test_what_has_no_column_is_refused_or_left_out(type: pa.DataType) -> None:
    schema = pa.schema([("a", pa.int64()), ("odd", pa.list_(type))])
    with pytest.raises(InvalidSchema, match=r"at \$\.odd"):
        RowColumns(arrow_schema(schema))
    assert RowColumns(arrow_schema(schema), leaves_out=True).arrow_type == pa.list_(pa.struct([("a", pa.int64())]))
    with pytest.raises(InvalidSchema, match="no field that could be a column"):
        RowColumns(arrow_schema(pa.schema([("odd", type)])), leaves_out=True)


def test_rows_that_take_no_byte_are_not_without_number() -> None:
    schema = pa.schema([("nothing", pa.null())])
    few, many = (
        bare(pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), rows, [None])], schema=schema))
        for rows in (8, 2**31 - 1)
    )
    assert read(schema, few, many) == [[{"nothing": None}] * 8, None]


def test_every_column_is_one_that_spark_knows() -> None:
    from sealane.spark.values.spark_type import spark_json_of, type_of_spark_json

    for type in (pa.uint8(), pa.float16(), pa.large_binary(), pa.date64(), pa.timestamp("ms", "UTC"), pa.decimal32(4)):
        column = column_type(pa.struct([("x", type)]))
        assert type_of_spark_json(spark_json_of(column)) == column
