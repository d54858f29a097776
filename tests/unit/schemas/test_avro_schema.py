"""Avro schemas: which are taken, which payloads fit, and that many at a time have the verdict of each by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealane.errors import InvalidSchema
from sealane.schemas import incompatibilities
from sealane.schemas.avro.avro_schema import FEW_PAYLOADS, TYPES_MAX, AvroSchema
from sealane.schemas.avro.canonical import fingerprint
from sealane.schemas.avro.one_value import DECIMAL_DIGITS_MAX, VALUES_NESTED_MAX
from tests.unit.spark.values.avro_schemas import records, written

patient = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

LINE = {"type": "record", "name": "Line", "fields": [{"name": "price", "type": "double"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "city", "type": "string"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "paid", "type": "boolean"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "sizes", "type": {"type": "map", "values": "long"}},
        {"name": "gift", "type": ["null", "string"]},
    ],
}
GOOD = {
    "id": 1,
    "city": "Oslo",
    "state": "PAID",
    "paid": True,
    "lines": [{"price": 2.5}],
    "sizes": {"a": 1},
    "gift": "x",
}
MANY_KINDS = {**ORDER, "fields": [*ORDER["fields"], {"name": "extra", "type": ["int", "string", "null"]}]}


def schema_of(schema: Any) -> AvroSchema:
    return AvroSchema(json.dumps(schema))


def with_fields(*fields: tuple[str, Any], **rest: Any) -> Any:
    listed = [{"name": name, "type": type, **rest.get(name, {})} for name, type in fields]
    return {"type": "record", "name": "R", "fields": listed}


@pytest.mark.parametrize("schema", [ORDER, MANY_KINDS])
def test_what_fits_is_taken_bare_or_as_a_single_object_few_or_many(schema: Any) -> None:
    payload = written(schema, {**GOOD, "extra": 5})
    single = b"\xc3\x01" + fingerprint(schema).to_bytes(8, "little") + payload
    opened = schema_of(schema)
    for payloads in ([payload, single], [payload, single] * FEW_PAYLOADS, []):
        assert opened.check(payloads) is None


def damaged() -> list[tuple[bytes, str, str]]:
    payload = written(ORDER, GOOD)
    return [
        (b"", "$.id", "ends"),
        (payload[:-1], "$.gift", "more than there is"),
        (payload + b"\0", "$", "goes on"),
        (b"\xff\xff\xff\xff\x7f" + payload[1:], "$.id", "an int"),
        (payload[:2] + b"\xff\xff\xff\xff" + payload[6:], "$.city", "no UTF-8"),
        (payload[:6] + b"\x08" + payload[7:], "$.state", "one of the 2 symbols"),
        (payload[:7] + b"\x02" + payload[8:], "$.paid", "a boolean"),
        (payload[:8] + b"\x02" + b"\0" * 7, "$.lines[0].price", "ends"),
        (payload[:8] + b"\xfe\xff\xff\xff\x0f", "$.lines", "more items than there are bytes"),
        (payload[:-3] + b"\x08", "$.gift", "union's 2 types"),
    ]


@pytest.mark.parametrize(("payload", "path", "problem"), damaged())
@pytest.mark.parametrize("schema", [ORDER, MANY_KINDS])
def test_of_what_does_not_fit_the_place_is_told(schema: Any, payload: bytes, path: str, problem: str) -> None:
    if schema is MANY_KINDS and path == "$":
        payload += b"\0\0"  # It has one more field, and goes on behind that.
    good = written(schema, {**GOOD, "extra": None})
    opened = schema_of(schema)
    for before in (1, FEW_PAYLOADS):
        misfit = opened.check([*[good] * before, payload, payload])
        assert misfit is not None
        assert (misfit.index, misfit.path) == (before, path)
        assert problem in misfit.problem


def test_the_header_of_another_schema_is_no_header() -> None:
    payload = written(ORDER, GOOD)
    assert schema_of(ORDER).check([b"\xc3\x01" + bytes(8) + payload]) is not None


@given(st.data())
@patient
def test_many_payloads_at_a_time_have_the_verdict_of_each_by_itself(data: st.DataObject) -> None:
    schema, of_schema = data.draw(records(logical=True))
    opened = schema_of(schema)
    sound = [written(schema, row) for row in data.draw(st.lists(of_schema, min_size=1, max_size=4))]
    for payload in sound:
        spoilt = bytearray(payload)
        for _ in range(data.draw(st.integers(0, 2))):
            if spoilt:
                spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
        cut = bytes(spoilt)[: data.draw(st.integers(0, len(spoilt)))] if data.draw(st.booleans()) else bytes(spoilt)
        alone, among = opened.check([cut]), opened.check([*sound[:1] * FEW_PAYLOADS, cut])
        assert (alone is None) == (among is None)
        assert opened.check([payload]) is None
        if alone is not None and among is not None:
            assert (among.index, among.path, among.problem) == (FEW_PAYLOADS, alone.path, alone.problem)


def test_values_within_values_go_so_deep_and_no_deeper() -> None:
    chain = schema_of({"type": "record", "name": "Chain", "fields": [{"name": "next", "type": ["null", "Chain"]}]})
    assert chain.check([b"\x02" * (VALUES_NESTED_MAX - 1) + b"\0"]) is None
    for depth in (VALUES_NESTED_MAX, 1_000_000):
        misfit = chain.check([b"\x02" * depth + b"\0"])
        assert misfit is not None
        assert "deep" in misfit.problem


def test_items_that_take_no_bytes_take_no_time_however_many_they_say_they_are() -> None:
    assert schema_of({"type": "array", "items": "null"}).check([b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0"]) is None


def test_names_that_double_again_and_again_are_refused_at_once() -> None:
    fields: list[Any] = [{"name": "f0", "type": with_fields(("a", "null"))}]
    fields[0]["type"]["name"] = "R0"
    for number in range(1, 50):
        before = f"R{number - 1}"
        record = {**with_fields(("a", before), ("b", before)), "name": f"R{number}"}
        fields.append({"name": f"f{number}", "type": record})
    with pytest.raises(InvalidSchema, match=f"{TYPES_MAX:,}"):
        schema_of({"type": "record", "name": "All", "fields": fields})


@pytest.mark.parametrize("schema", ["string", {"type": "map", "values": "string"}, ["null", "string"], with_fields()])
def test_any_type_can_be_outermost(schema: Any) -> None:
    value: Any = {"a": "b"} if isinstance(schema, dict) and schema["type"] == "map" else "x"
    payload = b"" if schema == with_fields() else written(schema, value)
    assert schema_of(schema).check([payload]) is None
    assert schema_of(schema).check([payload + b"\0"]) is not None


@pytest.mark.parametrize(
    "schema", ["{}", "no JSON", '"nope"', '["null", "null"]', '{"type": "array"}', '{"type": "fixed", "name": "F"}']
)
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(InvalidSchema):
        AvroSchema(schema)


def test_a_decimal_has_so_many_digits_and_no_more() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL_DIGITS_MAX, "scale": 0}
    assert schema_of(decimal).check([b"\x02\x01"]) is None
    with pytest.raises(InvalidSchema, match="digits"):
        schema_of({**decimal, "precision": DECIMAL_DIGITS_MAX + 1})
    with pytest.raises(InvalidSchema, match="digits"):
        schema_of({**decimal, "precision": 10**18})


def test_a_logical_type_that_nobody_knows_is_ignored() -> None:
    assert schema_of({"type": "long", "logicalType": "parsecs"}).check([b"\x02"]) is None


def test_decimals_have_as_many_digits_as_they_may() -> None:
    price = schema_of({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1})
    assert price.check([b"\x04" + (999).to_bytes(2, "big", signed=True)]) is None
    assert price.check([b"\x04" + (1_000).to_bytes(2, "big", signed=True)]) is not None


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        (
            with_fields(("a", "int")),
            with_fields(("a", "long")),
            [],
            ["$.a: reader type: int not compatible with writer type: long (forward)"],
        ),
        (with_fields(("a", "int")), with_fields(("a", "int"), ("b", "string"), b={"default": ""}), [], []),
        (
            with_fields(("a", "int")),
            with_fields(("a", "int"), ("b", "string")),
            ["$.b: it has no default, and is not in what is written (backward)"],
            [],
        ),
        (
            with_fields(("a", "int"), ("b", "string")),
            with_fields(("a", "int")),
            [],
            ["$.b: it has no default, and is not in what is written (forward)"],
        ),
        (
            with_fields(("a", {"type": "array", "items": with_fields(("x", "int")) | {"name": "X"}})),
            with_fields(("a", {"type": "array", "items": with_fields(("x", "string")) | {"name": "X"}})),
            ["$.a[*].x: reader type: string not compatible with writer type: int (backward)"],
            ["$.a[*].x: reader type: int not compatible with writer type: string (forward)"],
        ),
    ],
)
def test_the_library_decides_what_may_follow_and_the_places_are_told(
    old: Any, new: Any, backward: list[str], forward: list[str]
) -> None:
    one, other = schema_of(old), schema_of(new)
    assert incompatibilities("backward", one, other) == backward
    assert incompatibilities("forward", one, other) == forward
    assert incompatibilities("full", one, other) == backward + forward
    assert incompatibilities("none", one, other) == []
