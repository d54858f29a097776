"""Any schema and any payload: what is read is what Python's own `json`, payload by payload, says it must be."""

from __future__ import annotations

import json
import string
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.spark.values import spark_type_json, values_of
from sealane.spark.values.json_values import JsonValues
from tests.unit.spark.values.reading import plain, read

NAMES = st.sampled_from(["a", "b", "c d", "ü", "value"])
SIMPLE = st.sampled_from([pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.utf8()])
TYPES = st.recursive(
    SIMPLE,
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(lambda item: pa.map_(pa.utf8(), item))
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda fields: pa.struct(list(fields.items())))
    ),
    max_leaves=4,
)
SCHEMAS = st.dictionaries(NAMES, TYPES, min_size=1, max_size=4).map(lambda fields: pa.struct(list(fields.items())))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def of_type(type: pa.DataType) -> st.SearchStrategy[Any]:
    """JSON that fits the type, mostly."""
    return st.none() | fitting(type) | fitting(type) | fitting(type) | ANY_JSON


def fitting(type: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(type):
        fields = {field.name: of_type(field.type) for field in type}
        return st.fixed_dictionaries({}, optional={**fields, "unexpected": ANY_JSON})
    if pa.types.is_list(type):
        return st.lists(of_type(type.value_type), max_size=3)
    if pa.types.is_map(type):
        return st.dictionaries(st.text(max_size=3), of_type(type.item_type), max_size=3)
    if pa.types.is_integer(type):
        return st.integers(-(2 ** (type.bit_width - 1)), 2 ** (type.bit_width - 1) - 1)
    if pa.types.is_floating(type):
        return st.floats(allow_nan=False, allow_infinity=False)
    return st.booleans() if pa.types.is_boolean(type) else st.text(max_size=5)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.StructType, list[bytes]]:
    schema = draw(SCHEMAS)
    payloads = []
    for value in draw(st.lists(fitting(schema) | ANY_JSON, max_size=8)):
        text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
        if draw(st.integers(0, 3)) == 0:
            place = draw(st.integers(0, len(text)))
            text = (
                text[:place] + draw(st.sampled_from(["", ",", "}", "\n", "0", '"', "\\", "\x00"])) + text[place + 1 :]
            )
        payloads.append(text.encode())
    return schema, payloads


def refuse(constant: str) -> None:
    raise ValueError(constant)


class Misfit(Exception):
    pass


def expected(payload: bytes, type: pa.StructType) -> Any:
    """None if the payload is corrupt."""
    try:
        value = json.loads(payload.decode(), parse_constant=refuse)
        # Python's decoder lets halves of characters pass, which no text of Arrow's can hold.
        json.dumps(value, ensure_ascii=False).encode()
        return shaped(value, type) if isinstance(value, dict) else None
    except (ValueError, Misfit):
        return None


def shaped(value: Any, type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(type) and isinstance(value, dict):
        return {field.name: shaped(value.get(field.name), field.type) for field in type}
    if pa.types.is_map(type) and isinstance(value, dict):
        return {key: shaped(item, type.item_type) for key, item in value.items()}
    if pa.types.is_list(type) and isinstance(value, list):
        return [shaped(item, type.value_type) for item in value]
    if pa.types.is_string(type) and isinstance(value, str):
        return value
    if pa.types.is_boolean(type) and isinstance(value, bool):
        return value
    if isinstance(value, bool):
        raise Misfit
    if pa.types.is_floating(type) and isinstance(value, int | float) and abs(value) < 1.7e308:
        return float(value)
    if pa.types.is_integer(type) and isinstance(value, int) and -1 <= value >> (type.bit_width - 1) <= 0:
        return value
    raise Misfit


def values_for(schema: pa.StructType) -> JsonValues:
    values = values_of("json", spark_type_json(Typed(schema)))
    assert isinstance(values, JsonValues)
    return values


class Typed:
    """Only a type, to have it written."""

    def __init__(self, arrow_type: pa.StructType) -> None:
        self.arrow_type = arrow_type

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        raise NotImplementedError


@given(cases())
@settings(max_examples=150, deadline=None)
def test_what_is_read_is_what_each_payload_says(case: tuple[pa.StructType, list[bytes]]) -> None:
    schema, payloads = case
    values = values_for(schema)

    assert values.arrow_type == schema
    assert read(values, payloads) == [plain(expected(payload, schema), schema) for payload in payloads]


@given(st.lists(st.text(string.printable, max_size=12) | st.binary(max_size=12), max_size=10), st.data())
@settings(max_examples=100, deadline=None)
def test_a_payload_becomes_the_same_whatever_is_beside_it(noise: list[str | bytes], data: st.DataObject) -> None:
    values = values_of("json", "p DECIMAL(4,2), t TIMESTAMP, n ARRAY<TIMESTAMP_NTZ>, s STRING")
    near = [
        *('{"p":1.25}', '{"p":1.255}', '{"p":"NaN"}', '{"t":"2024-01-01T00:00:00Z"}', '{"t":"2024-01-01T00:00:00"}'),
        *('{"t":"2024-01-01T00:00:00.123456789+01"}', '{"t":"2023-02-29"}', '{"t":""}', '{"n":["2024-01-01 05:06"]}'),
        *('{"n":["2024-01-01 05:06Z"]}', '{"s":"x"}', '{"s":1}', "{}", "", "{}{}"),
    ]
    picked = data.draw(st.lists(st.sampled_from(near), max_size=12))
    payloads = [some if isinstance(some, bytes) else some.encode() for some in (*noise, *picked)]
    payloads = data.draw(st.permutations(payloads))

    assert read(values, payloads) == [read(values, [payload])[0] for payload in payloads]
