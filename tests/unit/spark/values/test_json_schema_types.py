"""A JSON Schema as columns: what it says of one type has one, the rest is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sealane.schemas.json.document import Document
from sealane.spark.errors import InvalidOption
from sealane.spark.values.json_schema_types import struct_of_json_schema


def struct_of(schema: Any) -> pa.StructType:
    return struct_of_json_schema(Document(json.dumps(schema)))


def field_of(schema: Any, **rest: Any) -> pa.DataType:
    return struct_of({"type": "object", "properties": {"a": schema}, **rest})["a"].type


@pytest.mark.parametrize(
    ("schema", "type"),
    [
        ({"type": "string"}, pa.utf8()),
        ({"type": "string", "format": "date"}, pa.utf8()),
        ({"type": "integer"}, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, pa.null()),
        ({"type": ["string", "null"]}, pa.utf8()),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, pa.int64()),
        ({"enum": ["a", "b", None]}, pa.utf8()),
        ({"const": 1}, pa.int64()),
        ({"type": "array", "items": {"type": "number"}}, pa.list_(pa.float64())),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, pa.map_(pa.utf8(), pa.int64())),
        ({"type": "object", "properties": {"b": {"type": "string"}}}, pa.struct([("b", pa.utf8())])),
        ({"$ref": "#/$defs/d"}, pa.bool_()),
    ],
)
def test_what_is_of_one_type_has_a_column(schema: Any, type: pa.DataType) -> None:
    assert field_of(schema, **{"$defs": {"d": {"type": "boolean"}}}) == type


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({}, "$.a: it may be of several types"),
        (True, "$.a: it may be anything"),
        ({"type": ["string", "integer"]}, "$.a: it may be of several types"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "$.a: it may be of several types"),
        ({"type": "array"}, "$.a: its `items`"),
        ({"type": "array", "items": {"type": "object"}}, "$.a[*]: it names no `properties`"),
        ({"$ref": "#"}, "$.a.a"),
    ],
)
def test_the_rest_is_refused_with_its_place(schema: Any, place: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        field_of(schema)
    assert refused.value.option == "valueSchemaFrom"
    assert place in refused.value.problem
    assert "valueSchema instead" in refused.value.problem


def test_payloads_must_be_objects() -> None:
    with pytest.raises(InvalidOption, match="must be an object"):
        struct_of({"type": "array", "items": {"type": "string"}})
