from __future__ import annotations

import datetime
import json
import pickle
import struct
import tracemalloc
from decimal import Decimal
from typing import Any

import fastavro
import fastavro.schema
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.schemas.avro.canonical import canonical_form, fingerprint
from sealane.schemas.avro.columns.cursor import Cursor
from sealane.spark.errors import InvalidOption
from sealane.spark.values import values_of
from sealane.spark.values.spark_type import NESTING_MAX
from tests.unit.spark.values.avro_schemas import records, written
from tests.unit.spark.values.reading import read


def record(*types: Any) -> str:
    fields = [{"name": f"f{place}", "type": type} for place, type in enumerate(types)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def one(type: Any, payload: bytes) -> Any:
    """The value of a record's one field; False if the payload is corrupt."""
    found = read(values_of("avro", record(type)), [payload])[0]
    return False if found is None else found["f0"]


def number(value: int) -> bytes:
    """As Avro writes it."""
    raw = (value << 1) ^ (value >> 63)
    out = b""
    while raw >= 0x80:
        out += bytes([raw & 0x7F | 0x80])
        raw >>= 7
    return out + bytes([raw])


INTEGERS = {"type": "array", "items": "long"}
TEXTS = {"type": "array", "items": "string"}


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200), min_size=1, max_size=40))
@settings(deadline=None)
def test_numbers_of_every_length_are_read_together(numbers: list[int]) -> None:
    cursor = Cursor.over(pa.array([number(value) for value in numbers], pa.binary()))

    assert cursor.longs().tolist() == numbers
    assert cursor.ok.all()
    assert (cursor.at == cursor.end).all()


@pytest.mark.parametrize(
    ("type", "payload"),
    [
        ("boolean", b"\x02"),
        ("boolean", b""),
        ("int", number(2**31)),
        ("int", number(-(2**31) - 1)),
        ("long", b"\x80"),
        ("long", b"\x80" * 9),
        ("long", b"\xff" * 9 + b"\x02"),
        ("long", b"\xff" * 10 + b"\x00"),
        ("long", b"\x02\x02"),
        ("float", bytes(3)),
        ("double", bytes(7)),
        ("double", bytes(10)),
        ("bytes", b"\x04a"),
        ("bytes", number(-1)),
        ("bytes", number(2**62)),
        ("bytes", number(-(2**63))),
        ("string", b"\x02\xff"),
        ("string", b"\x04\xed\xa0"),
        (["null", "long"], b"\x04"),
        (["null", "long"], b"\x01"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc"),
        (INTEGERS, b""),
        (INTEGERS, b"\x02\x02"),
        (INTEGERS, b"\x04\x02\x00"),
        (INTEGERS, number(2**60) + bytes(40)),
        (INTEGERS, number(-(2**63)) + b"\x02" + bytes(40)),
        (INTEGERS, b"\x01"),
        (TEXTS, b"\x02\x02\xff\x00"),
        ({"type": "map", "values": "long"}, b"\x02\x02a\x00"),
        ({"type": "long", "logicalType": "timestamp-millis"}, number(2**62)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x64"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x9c"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x00"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, number(17) + bytes(17)),
    ],
    ids=str,
)
def test_what_is_no_value_of_the_type_is_corrupt_and_moves_no_other_row(type: Any, payload: bytes) -> None:
    values = values_of("avro", record(type, "string"))
    sound = written(json.loads(record(type, "string")), {"f0": VALUES.get(kind(type), 0), "f1": "end"})
    good = read(values, [sound])[0]

    assert good is not None
    assert one(type, payload) is False
    assert read(values, [sound, payload + b"\x06end", sound, payload, sound]) == [good, None, good, None, good]
    # As many as are read an item at a time.
    assert read(values, [sound, payload] * 100) == [good, None] * 100


def kind(type: Any) -> Any:
    return type["type"] if isinstance(type, dict) else type[1] if isinstance(type, list) else type


VALUES = dict(boolean=True, bytes=b"\x01", string="x", enum="A", fixed=b"abcd", array=[], map={})  # noqa: C408


def test_every_decimal_of_every_length_is_read() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3}
    numbers = [sign * (1 << bits) + more for bits in range(126) for sign in (-1, 1) for more in (-1, 0, 1)]
    numbers += [10**38 - 1, 1 - 10**38]
    payloads = []
    for value in numbers:
        size = max(1, (value.bit_length() + 8) // 8)
        payloads.append(number(size) + value.to_bytes(size, "big", signed=True))
    too_large = number(16) + (10**38).to_bytes(16, "big")

    found = read(values_of("avro", record(schema)), [*payloads, too_large])

    assert [value["f0"] for value in found[:-1]] == [Decimal(f"{value}e-3") for value in numbers]
    assert found[-1] is None


def test_times_and_days_are_sparks() -> None:
    at = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, datetime.UTC)
    assert one({"type": "long", "logicalType": "timestamp-millis"}, number(-1)) == at
    assert one({"type": "long", "logicalType": "timestamp-micros"}, number(-1000)) == at
    assert one({"type": "long", "logicalType": "local-timestamp-millis"}, number(-1)) == at.replace(tzinfo=None)
    assert one({"type": "int", "logicalType": "date"}, number(-1)) == datetime.date(1969, 12, 31)
    # What has no type in Spark is what lies under it.
    assert one({"type": "int", "logicalType": "time-millis"}, number(5)) == 5
    assert one({"type": "long", "logicalType": "what?"}, number(5)) == 5


def test_items_come_in_any_number_of_blocks_with_or_without_their_size() -> None:
    blocks = number(2) + number(1) + number(2) + number(-1) + number(1) + number(3) + number(1) + number(4) + b"\x00"

    assert one(INTEGERS, blocks) == [1, 2, 3, 4]
    values = values_of("avro", record(INTEGERS))
    assert read(values, [blocks, b"\x00"] * 50) == [{"f0": [1, 2, 3, 4]}, {"f0": []}] * 50


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    entries = number(3) + b"\x02a" + number(1) + b"\x02b" + number(2) + b"\x02a" + number(3) + b"\x00"
    plain = number(1) + b"\x02a" + number(9) + b"\x00"
    values = values_of("avro", record({"type": "map", "values": "long"}))

    assert (
        read(values, [plain, entries, plain] * 20)
        == [
            *({"f0": {"a": 9}}, {"f0": {"a": 3, "b": 2}}, {"f0": {"a": 9}}),
        ]
        * 20
    )


def test_one_row_with_very_many_items_is_read_with_the_others() -> None:
    many, few = ["ab"] * 100_000, ["c"]
    schema = record(TEXTS)
    rows = [few] * 50 + [many] + [few] * 50

    found = read(values_of("avro", schema), [written(json.loads(schema), {"f0": row}) for row in rows])

    assert [value["f0"] for value in found] == rows


@pytest.mark.parametrize("type", ["bytes", TEXTS, INTEGERS, {"type": "map", "values": TEXTS}], ids=str)
def test_a_length_that_lies_takes_no_memory(type: Any) -> None:
    values = values_of("avro", record(type))
    payloads = pa.array([number(2**40) + b"\x02" * 100, number(2**31 - 1) + bytes(100)] * 100, pa.binary())
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        value, _ = values.read(payloads)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert value.null_count == 200
    assert peak < 4 * 2**20
    assert pa.total_allocated_bytes() - before < 2**20


def test_no_payloads_and_absent_payloads() -> None:
    values = values_of("avro", record("null", ["null", TEXTS], {"type": "map", "values": INTEGERS}))

    assert read(values, []) == []
    assert read(values, [None, b"\x00\x00", b"", None]) == [None, {"f0": None, "f1": None, "f2": {}}, None, None]
    assert read(values_of("avro", record("null")), [None, b"", b"\x00"]) == [None, {"f0": None}, None]


def test_a_part_of_a_batch_is_read_as_that_part() -> None:
    payloads = pa.array([b"\x01\x01", b"\x02", b"", b"\x04", b"\x06\x06"], pa.binary()).slice(1, 3)

    value, corrupt = values_of("avro", record("long")).read(payloads)

    assert value.to_pylist() == [{"f0": 1}, None, {"f0": 2}]
    assert corrupt.to_pylist() == [None, b"", None]


def test_values_are_the_same_after_a_journey_to_another_process() -> None:
    values = pickle.loads(pickle.dumps(values_of("avro", record("long"))))

    assert read(values, [b"\x02", b""]) == [{"f0": 1}, None]


def test_a_value_may_be_in_the_single_object_encoding_of_its_schema() -> None:
    schema = record("long", "string")
    value = {"f0": 5, "f1": "x" * 20}
    bare = written(json.loads(schema), value)
    header = b"\xc3\x01" + struct.pack("<Q", fingerprint(json.loads(schema)))
    foreign = b"\xc3\x01" + struct.pack("<Q", fingerprint(json.loads(schema)) + 1)

    assert read(values_of("avro", schema), [header + bare, bare, foreign + bare, header, header[:9], bare[:-1]]) == [
        *(value, value, None, None, None, None)
    ]


def test_a_bare_value_may_begin_like_a_header() -> None:
    assert one("long", b"\xc3\x01") == -98


@given(records(logical=True))
@settings(deadline=None)
def test_the_fingerprint_is_that_of_the_canonical_form(schema: Any) -> None:
    check_fingerprint(schema[0])


def test_names_in_the_canonical_form_are_full() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A", "B_1"], "doc": "x"}
    outer = {"type": "record", "name": "b.c.In", "fields": [{"name": "e", "type": inner}, {"name": "f", "type": "E"}]}
    check_fingerprint(
        {
            "type": "record",
            "name": "R",
            "namespace": "a.b",
            "aliases": ["Old"],
            "fields": [
                {"name": "x", "type": ["null", outer], "default": None},
                {"name": "y", "type": {"type": "fixed", "name": "F", "size": 3}},
                {"name": "z", "type": {"type": "array", "items": "F"}},
                {"name": "v", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            ],
        }
    )


def check_fingerprint(schema: Any) -> None:
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(json.dumps(schema)))

    assert canonical_form(schema) == canonical
    assert (
        f"{fingerprint(schema):016x}"
        == int.from_bytes(bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")), "little")
        .to_bytes(8, "big")
        .hex()
    )


def test_named_types_are_found_by_their_names() -> None:
    inner = {"type": "record", "name": "In", "namespace": "x.y", "fields": [{"name": "v", "type": "long"}]}
    schema = record(inner, "x.y.In", {"type": "array", "items": "x.y.In"}, ["null", "x.y.In"])

    found = read(values_of("avro", schema), [b"\x02\x04\x02\x06\x00\x02\x08"])

    assert found == [{"f0": {"v": 1}, "f1": {"v": 2}, "f2": [{"v": 3}], "f3": {"v": 4}}]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("", "it is no JSON"),
        ("order_id BIGINT", "it is no JSON"),
        ('"long"', "outermost type must be a record"),
        ("5", "5 is no type of Avro"),
        ('{"type":"record","name":"R","fields":[]}', "no field"),
        ('{"type":"record","fields":[]}', "leaves out what such a type needs"),
        ('{"type":"record","name":"R"}', "no list of fields"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "a field has a name and a type"),
        ('{"type":"record","name":"R","namespace":5,"fields":[]}', "the namespace 5 is no text"),
        (record("money"), "at f0: the type 'money' is not known"),
        (record({"type": "array"}), "leaves out"),
        (record(["long", "string"]), r'at f0: the union \["long","string"\] is not of null and one other type'),
        (record(["null"]), "is not of null and one other type"),
        (record(["null", "long", "string"]), "is not of null and one other type"),
        (record(["null", {"type": "null"}]), "holds null twice"),
        (record(["null", ["null", "long"]]), "is not of null|another union"),
        (record("R"), "holds itself"),
        (record({"type": "array", "items": ["null", "R"]}), "at f0.items: the type 'R' holds itself"),
        (record({"type": "array", "items": "null"}), "take no byte"),
        (record({"type": "fixed", "name": "F", "size": 0}), "no size"),
        (
            record({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 1}),
            "more than once",
        ),
        (record({"type": "enum", "name": "E", "symbols": []}), "no list of symbols"),
        (record({"type": "bytes", "logicalType": "decimal"}), "has a precision"),
        (record({"type": "bytes", "logicalType": "decimal", "precision": 39}), "cannot be"),
        (
            record({"type": "fixed", "name": "F", "size": 17, "logicalType": "decimal", "precision": 3}),
            "more than the 16",
        ),
        ('{"type":' * 40 + '"long"' + "}" * 40, f"at most {NESTING_MAX}"),
        ('{"type":' * 100_000, "it is no JSON"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
            "more than once",
        ),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused_with_the_reason(schema: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem) as refusal:
        values_of("avro", schema)

    assert refusal.value.option == "valueSchema"
