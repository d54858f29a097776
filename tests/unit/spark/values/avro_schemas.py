"""Avro schemas for hypothesis, each with the values that it can have, and fastavro to write and read them."""

from __future__ import annotations

import datetime
import io
import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
from hypothesis import strategies as st

UTC = datetime.UTC
Typed = tuple[Any, st.SearchStrategy[Any]]

texts = st.text(st.characters(codec="utf-8"), max_size=9)
moments = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
decimals = st.decimals(min_value=-9_999_999, max_value=9_999_999, places=2, allow_nan=False)

PLAIN: list[Typed] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=9)),
    ("string", texts),
]
LOGICAL: list[Typed] = [
    ({"type": "string", "logicalType": "uuid", "avro.java.string": "String"}, st.uuids()),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    ({"type": "long", "logicalType": "timestamp-micros"}, moments),
    ({"type": "long", "logicalType": "timestamp-millis"}, moments.map(lambda at: at.replace(microsecond=7000))),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        moments.map(lambda at: at.replace(tzinfo=None)),
    ),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, decimals),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
        st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    ),
]


@st.composite
def types(draw: st.DrawFn, *, logical: bool, depth: int = 0) -> Typed:
    """A type and its values; named ones have no names yet."""
    kinds = ["plain", "plain", "enum", "fixed"] + (["logical"] if logical else [])
    if depth < 3:
        kinds += ["nullable", "array", "map", "record"]
    kind = draw(st.sampled_from(kinds))
    if kind == "plain":
        return draw(st.sampled_from(PLAIN))
    if kind == "logical":
        if draw(st.booleans()):
            schema = {"type": "fixed", "size": 7, "logicalType": "decimal", "precision": 9, "scale": 2}
            return schema, decimals
        return draw(st.sampled_from(LOGICAL))
    if kind == "enum":
        return {"type": "enum", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return {"type": "fixed", "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        return draw(unnamed_records(logical=logical, depth=depth + 1))
    schema, values = draw(types(logical=logical, depth=depth + 1))
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(texts, values, max_size=4)
    if kind == "array" and not takes_no_byte(schema):
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)
    if isinstance(schema, list) or schema == "null":
        return schema, values
    branches = ["null", schema] if draw(st.booleans()) else [schema, "null"]
    return branches, st.none() | values


@st.composite
def unnamed_records(draw: st.DrawFn, *, logical: bool, depth: int = 0) -> Typed:
    fields = draw(st.lists(types(logical=logical, depth=depth), min_size=1, max_size=4))
    schema = {
        "type": "record",
        "fields": [{"name": f"f{place}", "type": type} for place, (type, _) in enumerate(fields)],
    }
    return schema, st.fixed_dictionaries({f"f{place}": values for place, (_, values) in enumerate(fields)})


@st.composite
def records(draw: st.DrawFn, *, logical: bool) -> Typed:
    """A schema, and its values."""
    schema, values = draw(unnamed_records(logical=logical))
    return named(schema, itertools.count()), values


def named(schema: Any, numbers: Iterator[int]) -> Any:
    """The schema with a name of its own for each type that needs one."""
    if isinstance(schema, list):
        return [named(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: named(value, numbers) if key in ("items", "values") else value for key, value in schema.items()}
    if schema["type"] in ("record", "enum", "fixed"):
        found["name"] = f"N{next(numbers)}"
    if schema["type"] == "record":
        found["fields"] = [{**field, "type": named(field["type"], numbers)} for field in schema["fields"]]
    return found


def takes_no_byte(schema: Any) -> bool:
    if isinstance(schema, dict) and schema["type"] == "record":
        return all(takes_no_byte(field["type"]) for field in schema["fields"])
    return schema == "null"


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def fastavro_reads(schema: Any, payload: bytes) -> tuple[Any, bool]:
    """The value, and whether it is all of the payload."""
    source = io.BytesIO(payload)
    value = fastavro.schemaless_reader(source, fastavro.parse_schema(json.loads(json.dumps(schema))), None)
    return value, source.tell() == len(payload)
