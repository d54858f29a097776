"""Clean rows as rows of their topic's tables: every row in one of them, and schemas that follow each other."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed.definitions import fields_of
from sealane.pipeline.typed.rows import NO_VALUES, SEVERAL, TopicRows
from sealane.pipeline.typed.versions import TypedVersion, evolved, keep_versions, kept_versions
from sealane.schemas.formats import Definition

CREATED = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(LakeKeys.open_or_make(tmp_path / "lake.keys"), "shop")


def json_schema(**properties: Any) -> Definition:
    return Definition("json", json.dumps({"type": "object", "properties": properties, "additionalProperties": False}))


def avro_schema(*fields: tuple[str, Any], name: str = "Order") -> Definition:
    written = {"type": "record", "name": name, "fields": [{"name": field, "type": type} for field, type in fields]}
    return Definition("avro", json.dumps(written))


def avro(definition: Definition, **record: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(definition.text)), record)
    return buffer.getvalue()


def clean(*bodies: bytes | None, format: str = "json", sealed_by: int | None = None) -> pa.RecordBatch:
    count = len(bodies)
    return pa.record_batch(
        {
            "id": pa.array([b"%016d" % row for row in range(count)]),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "created": pa.array([CREATED] * count, pa.timestamp("us", "UTC")),
            "key": pa.array([None] * count, pa.binary()),
            "body": pa.array(bodies, pa.binary()),
            "body_format": pa.array([format] * count),
            "sealed_by": pa.array([sealed_by] * count, pa.int32()),
        }
    )


def typed(versions: tuple[TypedVersion, ...], batch: pa.RecordBatch, numbers: Numbers) -> dict[tuple[int, int], Any]:
    """By version and offset: the values, or why there are none."""
    found: dict[tuple[int, int], Any] = {}
    for part in TopicRows(versions, numbers).of(batch):
        for row in part.batch.to_pylist():
            place = (part.version, row["offset"])
            assert place not in found
            values = {name: row[name] for name in part.batch.schema.names[5:-1]}
            found[place] = row["_misfit"] or values
            assert row["_misfit"] is None or not any(value is not None for value in values.values())
    return found


def test_fields_without_one_type_are_left_out_and_the_others_stay() -> None:
    text = Definition(
        "json",
        json.dumps(
            {
                "type": "object",
                "$defs": {"city": {"type": "string"}},
                "properties": {
                    "id": {"type": "integer"},
                    "any": {},
                    "several": {"type": ["string", "integer"]},
                    "city": {"$ref": "#/$defs/city"},
                    "nothing": {"type": "null"},
                },
            }
        ),
    )
    assert fields_of(text) == pa.struct([("id", pa.int64()), ("city", pa.utf8())])
    assert fields_of(Definition("json", '{"type": "array", "items": {"type": "string"}}')) is None
    assert fields_of(Definition("json", "true")) is None
    assert fields_of(Definition("arrow", "AAAA")) is None
    assert fields_of(Definition("avro", '"string"')) is None


def test_a_schema_that_follows_adds_columns_and_another_one_begins_a_table(tmp_path: Path) -> None:
    first = avro_schema(("id", "int"), ("price", "float"))
    wider = avro_schema(("id", "long"), ("price", "double"), ("city", ["null", "string"]))
    other = avro_schema(("id", "string"))
    one = evolved((), [first])
    assert [version.fields_type for version in one] == [pa.struct([("id", pa.int64()), ("price", pa.float64())])]
    (both,) = evolved(one, [first, wider])
    assert both.fields_type == pa.struct([("id", pa.int64()), ("price", pa.float64()), ("city", pa.utf8())])
    versions = evolved((both,), [first, wider, other])
    assert [(version.number, version.definitions) for version in versions] == [(1, (first, wider)), (2, (other,))]
    # What the lake has stays, whatever is left of it on the node.
    assert evolved(versions, [other]) == versions
    assert evolved(versions, [wider, other]) == versions
    lake = Lake(tmp_path)
    keep_versions(lake, "shop/orders", versions)
    assert kept_versions(lake, "shop/orders") == versions
    assert kept_versions(lake, "shop/order") == ()


def test_each_row_is_in_the_newest_table_that_can_have_it(numbers: Numbers) -> None:
    first = json_schema(id={"type": "integer"}, city={"type": "string"})
    second = json_schema(id={"type": "string"})
    versions = evolved((), [first, second])
    bodies = (b'{"id":1,"city":"Ulm"}', b'{"id":"a"}', b'{"city":"Ulm"}', b'{"id":2.0}', b'{"id":1e400}', b"[]")
    assert typed(versions, clean(*bodies), numbers) == {
        (1, 0): {"value_id": 1, "city": "Ulm"},
        (2, 1): {"value_id": "a"},
        (2, 2): {"value_id": None},
        (1, 3): {"value_id": 2, "city": None},
        (2, 4): NO_VALUES,
        (2, 5): NO_VALUES,
    }


def test_bodies_that_are_not_in_the_open_have_no_row(numbers: Numbers) -> None:
    versions = evolved((), [json_schema(id={"type": "integer"})])
    assert typed(versions, clean(None, b"{}"), numbers) == {(1, 1): {"value_id": None}}
    assert typed(versions, clean(b"...", sealed_by=1), numbers) == {}
    assert typed(versions, clean(b"...", format="sealed-end-to-end"), numbers) == {}


def test_a_number_that_was_too_short_to_be_hashed_is_text(numbers: Numbers) -> None:
    versions = evolved((), [json_schema(phone={"type": "integer"}, fax={"type": "number"}, n={"type": "integer"})])
    hashed = numbers.hashed("491701234567")
    bodies = (b'{"phone":"%s","n":1}' % hashed.encode(), b'{"phone":110,"fax":1.5,"n":1.0}')
    assert typed(versions, clean(*bodies), numbers) == {
        (1, 0): {"phone": hashed, "fax": None, "n": 1},
        (1, 1): {"phone": "110", "fax": "1.5", "n": 1},
    }


def test_avro_of_any_version_is_read_by_its_own(numbers: Numbers) -> None:
    first = avro_schema(("id", "int"), ("phone", "long"))
    second = avro_schema(("id", "long"), ("phone", "long"), ("city", ["null", "string"]))
    versions = evolved((), [first, second])
    bodies = (
        avro(first, id=1, phone=491701234567),
        avro(second, id=2, phone=110, city="+49 170 1234567"),
        b"\x01" * 40,
    )
    assert typed(versions, clean(*bodies, format="binary"), numbers) == {
        (1, 0): {"value_id": 1, "phone": numbers.hashed("491701234567"), "city": None},
        (1, 1): {"value_id": 2, "phone": "110", "city": numbers.hashed("+49 170 1234567")},
        (1, 2): NO_VALUES,
    }


def test_avro_that_two_versions_read_differently_is_not_guessed_at(numbers: Numbers) -> None:
    first, swapped = avro_schema(("a", "string"), ("b", "string")), avro_schema(("b", "string"), ("a", "string"))
    versions = evolved((), [first, swapped])
    bodies = (avro(first, a="x", b="y"), avro(first, a="x", b="x"))
    assert typed(versions, clean(*bodies, format="binary"), numbers) == {(1, 0): SEVERAL, (1, 1): {"a": "x", "b": "x"}}
    same = evolved((), [avro_schema(("n", "int"), ("x", "double")), avro_schema(("n", "long"), ("x", "double"))])
    nan = avro(avro_schema(("n", "int"), ("x", "double")), n=1, x=float("nan"))
    (found,) = typed(same, clean(nan, format="binary"), numbers).values()
    assert found["n"] == 1
