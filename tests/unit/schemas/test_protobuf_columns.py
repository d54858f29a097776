"""Protobuf messages as columns: every kind of field, what may be absent, and payloads that are none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidSchema
from sealane.schemas.protobuf.columns import COLUMNS_MAX, MessageColumns
from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema
from tests.unit.schemas.protobuf_files import enum, field, message, schema_of


def optional(name: str, number: int, type: str, oneof: int) -> Any:
    """Of proto3, with the `oneof` of its own that the compiler makes for it."""
    made = field(name, number, type, oneof=oneof)
    made.proto3_optional = True
    return made


def map_entry(name: str, key: str, value: str, **rest: Any) -> Any:
    made = message(name, field("key", 1, key), field("value", 2, value, **rest))
    made.options.map_entry = True
    return made


def with_nested(made: Any, *nested: Any) -> Any:
    made.nested_type.extend(nested)
    return made


LINE = message("Line", field("price", 1, "double"), optional("note", 2, "string", 0), oneofs=1)
COLOUR = enum("Colour", 0, 1, -3)
ORDER = with_nested(
    message(
        "M",
        field("id", 1, "int32"),
        field("total", 2, "uint64"),
        field("city", 3, "string"),
        field("data", 4, "bytes"),
        field("paid", 5, "bool"),
        field("sizes", 6, "sint32", "repeated"),
        field("lines", 7, "message", "repeated", of=".Line"),
        field("first", 8, "message", of=".Line"),
        field("colour", 9, "enum", of=".Colour"),
        field("colours", 10, "enum", "repeated", of=".Colour"),
        optional("age", 11, "fixed32", 1),
        field("by_card", 12, "string", oneof=0),
        field("by_line", 13, "message", oneof=0, of=".Line"),
        field("prices", 14, "message", "repeated", of=".M.PricesEntry"),
        field("stock", 15, "message", "repeated", of=".M.StockEntry"),
        field("share", 16, "float"),
        reserved=[(90, 91)],
        oneofs=2,
    ),
    map_entry("PricesEntry", "string", "message", of=".Line"),
    map_entry("StockEntry", "int64", "int32"),
)
SCHEMA = schema_of(ORDER, LINE, enums=[COLOUR])
NOTHING = {
    "id": 0,
    "total": 0,
    "city": "",
    "data": b"",
    "paid": False,
    "sizes": [],
    "lines": [],
    "first": None,
    "colour": "Colour_0",
    "colours": [],
    "age": None,
    "by_card": None,
    "by_line": None,
    "prices": [],
    "stock": [],
    "share": 0.0,
}


def made(schema: ProtobufSchema = SCHEMA, **fields: Any) -> bytes:
    return bytes(schema.descriptor._concrete_class(**fields).SerializeToString(deterministic=True))


def read(schema: ProtobufSchema, *payloads: bytes | None, passes: bool = True, leaves_out: bool = False) -> list[Any]:
    columns = MessageColumns(schema, leaves_out=leaves_out)
    values, is_sound = columns.read(pa.array(payloads, pa.binary()), passes=passes)
    values.validate(full=True)
    assert values.type == columns.arrow_type
    found: list[Any] = values.to_pylist()
    assert [each is not None for each in found] == is_sound.tolist()
    return found


def test_every_kind_of_field_is_a_column() -> None:
    line = pa.struct([("price", pa.float64()), ("note", pa.utf8())])
    assert {each.name: each.type for each in MessageColumns(SCHEMA).arrow_type} == {
        "id": pa.int32(),
        "total": pa.int64(),
        "city": pa.utf8(),
        "data": pa.binary(),
        "paid": pa.bool_(),
        "sizes": pa.list_(pa.int32()),
        "lines": pa.list_(line),
        "first": line,
        "colour": pa.utf8(),
        "colours": pa.list_(pa.utf8()),
        "age": pa.int64(),
        "by_card": pa.utf8(),
        "by_line": line,
        "prices": pa.map_(pa.utf8(), line),
        "stock": pa.map_(pa.int64(), pa.int32()),
        "share": pa.float32(),
    }
    full = made(
        id=-1,
        total=2**63 - 1,
        city="Köln",
        data=b"\xff",
        paid=True,
        sizes=[1, -2],
        lines=[{"price": 1.5}, {"note": ""}],
        first={},
        colour=-3,
        colours=[1, 7],
        age=0,
        by_line={"price": 2},
        prices={"b": {"price": 1}, "a": {}},
        stock={5: 1, -5: 2},
        share=0.5,
    )
    none = {"price": 0.0, "note": None}
    assert read(SCHEMA, b"", full) == [
        NOTHING,
        {
            "id": -1,
            "total": 2**63 - 1,
            "city": "Köln",
            "data": b"\xff",
            "paid": True,
            "sizes": [1, -2],
            "lines": [{"price": 1.5, "note": None}, {"price": 0.0, "note": ""}],
            "first": none,
            "colour": "Colour_m3",
            "colours": ["Colour_1", "7"],
            "age": 0,
            "by_card": None,
            "by_line": {"price": 2.0, "note": None},
            "share": 0.5,
            "prices": [("a", none), ("b", {"price": 1.0, "note": None})],
            "stock": [(-5, 2), (5, 1)],
        },
    ]
    assert read(SCHEMA) == []


@given(
    st.lists(st.sampled_from([b"", made(id=7), made(total=2**63), b"\xff", b"\x08", b"\x0a\x00", None]), max_size=40)
)
def test_each_payload_is_judged_by_itself(payloads: list[bytes | None]) -> None:
    by_itself = {b"": NOTHING, made(id=7): NOTHING | {"id": 7}}
    assert read(SCHEMA, *payloads) == [by_itself.get(payload or b"-" * (payload is None)) for payload in payloads]


def test_numbers_that_may_be_there_are_passed_over_if_that_is_asked_for() -> None:
    reserved = made(id=7) + b"\xd0\x05\x01"
    assert read(SCHEMA, reserved) == [NOTHING | {"id": 7}]
    assert read(SCHEMA, reserved, made(id=7), passes=False) == [None, NOTHING | {"id": 7}]


def test_proto2_tells_what_is_absent_and_its_texts_may_be_none() -> None:
    old = schema_of(
        message(
            "M", field("id", 1, "int32", "required"), field("name", 2, "string"), field("kind", 3, "enum", of=".Colour")
        ),
        syntax="proto2",
        enums=[COLOUR],
    )
    assert read(old, b"\x08\x07", b"\x08\x07\x12\x01a", b"\x08\x07\x12\x01\xff", b"", b"\x08\x07\x18\x09") == [
        {"id": 7, "name": None, "kind": None},
        {"id": 7, "name": "a", "kind": None},
        None,
        None,
        None,
    ]


def test_times_and_wrappers_are_what_they_stand_for() -> None:
    files = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.add(
        name="schema.proto",
        syntax="proto3",
        dependency=[timestamp_pb2.DESCRIPTOR.name, wrappers_pb2.DESCRIPTOR.name],
        message_type=[
            message(
                "M",
                field("at", 1, "message", of=".google.protobuf.Timestamp"),
                field("n", 2, "message", of=".google.protobuf.Int64Value"),
            )
        ],
    )
    schema = ProtobufSchema(files.SerializeToString(), "M")
    then = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    payload = made(schema, at={"seconds": -1, "nanos": 999_999_999}, n={"value": 0})
    assert read(schema, payload, b"", made(schema, at={"seconds": 2**60})) == [
        {"at": then, "n": 0},
        {"at": None, "n": None},
        None,
    ]


def test_a_message_that_holds_itself_has_no_column() -> None:
    tree = schema_of(
        message("M", field("id", 1, "int64"), field("tree", 2, "message", of=".Tree"), field("z", 3, "int64")),
        message("Tree", field("left", 1, "message", of=".Tree")),
    )
    with pytest.raises(InvalidSchema, match=r"at \$\.tree\.left: the message Tree holds itself"):
        MessageColumns(tree)
    assert read(tree, b"\x08\x01\x12\x02\x0a\x00\x18\x02", leaves_out=True) == [{"id": 1, "z": 2}]
    with pytest.raises(InvalidSchema, match="no field that could be a column"):
        MessageColumns(schema_of(message("M", field("m", 1, "message", of=".M"))), leaves_out=True)


def test_a_small_text_cannot_ask_for_columns_without_number() -> None:
    doubled = [message(f"D{n}", *(field(f"f{k}", k, "message", of=f".D{n + 1}") for k in (1, 2))) for n in range(25)]
    last = message("D25", field("n", 1, "int64"))
    wide = schema_of(message("M", field("id", 1, "int64"), field("d", 2, "message", of=".D0")), *doubled, last)
    with pytest.raises(InvalidSchema, match=f"more than {COLUMNS_MAX:,} columns"):
        MessageColumns(wide)
    assert MessageColumns(wide, leaves_out=True).arrow_type == pa.struct([("id", pa.int64())])


def test_a_message_without_fields_is_there_or_not() -> None:
    schema = schema_of(message("M", field("id", 1, "int64"), field("e", 2, "message", of=".E")), message("E"))
    assert read(schema, b"\x12\x00", b"") == [{"id": 0, "e": {}}, {"id": 0, "e": None}]
