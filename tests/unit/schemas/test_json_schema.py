"""JSON Schemas: which are taken, which payloads fit, and what is said of one that does not."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from sealane.errors import InvalidSchema
from sealane.schemas.json.depth import JSON_DEPTH_MAX
from sealane.schemas.json.document import EXPANDED_MAX, PATTERNS_MAX
from sealane.schemas.json.json_schema import JsonSchema
from sealane.schemas.limits import SCHEMA_NESTING_MAX

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "city": {"type": ["string", "null"], "maxLength": 5},
        "state": {"enum": ["new", "paid"]},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        },
        "gift": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"to": {"type": "string"}}}]},
        "next": {"$ref": "#"},
    },
    "patternProperties": {"^x-": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def schema_of(document: Any) -> JsonSchema:
    return JsonSchema(json.dumps(document))


@pytest.mark.parametrize(
    "document",
    [
        {"id": 1},
        {"id": 1.0},
        {"id": 1, "city": None, "lines": [{"price": 2}]},
        {"id": 2, "x-note": "a", "next": {"id": 3}},
    ],
)
def test_what_fits_is_taken(document: Any) -> None:
    assert schema_of(ORDER).check([json.dumps(document).encode()]) is None


@pytest.mark.parametrize(
    ("document", "path", "problem"),
    [
        ({}, "$.id", "it is required, and missing"),
        ({"id": "secret"}, "$.id", "it must be of type integer"),
        ({"id": 0}, "$.id", "it must keep `minimum` (1)"),
        ({"id": 1, "city": "far too long"}, "$.city", "it must keep `maxLength` (5)"),
        ({"id": 1, "state": "secret"}, "$.state", "it must be one of the 2 values of `enum`"),
        ({"id": 1, "lines": [{"price": 1}, {}]}, "$.lines[1].price", "it is required, and missing"),
        ({"id": 1, "gift": {"to": 5}}, "$.gift.to", "it must be of type string"),
        ({"id": 1, "gift": 5}, "$.gift", "it fits none of the 2 alternatives of `anyOf`"),
        ({"id": 1, "next": {"id": 2, "next": {"id": "secret"}}}, "$.next.next.id", "it must be of type integer"),
        ({"id": 1, "more": 1}, "$.more", "the schema has no such property, and allows no others"),
        ({"id": 1, "x-note": 5}, "$.x-note", "it must be of type string"),
        ([], "$", "it must be of type object"),
    ],
)
def test_of_what_does_not_fit_the_place_is_told_and_what_is_expected_there(
    document: Any, path: str, problem: str
) -> None:
    misfit = schema_of(ORDER).check([b'{"id": 1}', json.dumps(document).encode()])
    assert misfit is not None
    assert (misfit.index, misfit.path, misfit.problem) == (1, path, problem)


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"secret", b'{"id": NaN}', b'{"id": 1} {}', b'"\xff"', b'"\\ud800"', b"1e999"]
)
def test_what_is_no_json_fits_nothing(payload: bytes) -> None:
    misfit = JsonSchema("true").check([payload])
    assert misfit is not None
    assert misfit.path == "$"
    assert "secret" not in misfit.problem


@pytest.mark.parametrize(
    ("schema", "document", "problem"),
    [
        ({"oneOf": [{"minimum": 1}, {"maximum": 9}]}, 5, "it fits 2 of the alternatives of `oneOf`, and may fit one"),
        ({"not": {"type": "null"}}, None, "it is what `not` excludes"),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "ab", "it must keep `minLength` (3)"),
        ({"contains": {"const": 1}}, [2], "it must keep `contains`"),
        ({"const": 7}, 8, "it must be the value that `const` says"),
        ({"allOf": [{"type": "string"}, {"pattern": "^a"}]}, "b", 'it must keep `pattern` ("^a")'),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "it must not be there"),
        ({"uniqueItems": True}, [1, 1], "it must keep `uniqueItems` (true)"),
        (False, 1, "it must not be there"),
    ],
)
def test_every_kind_of_rule_says_what_is_expected(schema: Any, document: Any, problem: str) -> None:
    misfit = schema_of(schema).check([json.dumps(document).encode()])
    assert misfit is not None
    assert misfit.problem == problem


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "it is no JSON"),
        ("[]", "neither an object nor true nor false"),
        ('{"type": "strin"}', "$.type"),
        ('{"$ref": "https://example.com/schema.json"}', "leads out of the document, and nothing is fetched"),
        ('{"$ref": "file:///etc/passwd"}', "leads out of the document"),
        ('{"$ref": "other.json#/a"}', "leads out of the document"),
        ('{"$ref": "#/nowhere"}', "leads nowhere"),
        ('{"$ref": "#/title", "title": "no schema"}', "no schema"),
        ('{"$schema": "https://example.com/own"}', "$schema is not known"),
        ('{"$schema": "http://json-schema.org/draft-04/schema#"}', "$schema is not known"),
        ('{"$defs": {"a": {"$anchor": "here"}}}', "$anchor at #/$defs/a"),
        ('{"properties": {"a": {"$id": "https://example.com/a"}}}', "$id at #/properties/a"),
        ('{"$dynamicRef": "#a"}', "$dynamicRef"),
        ('{"pattern": "(?=a)"}', "$.pattern"),
        ('{"pattern": "(a{1000}){1000}"}', "$.pattern"),
        ('{"multipleOf": 1e-12}', "multipleOf"),
        ('{"patternProperties": 5}', "$.patternProperties"),
    ],
)
def test_what_is_no_schema_or_leads_elsewhere_is_refused(schema: str, problem: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        JsonSchema(schema)
    assert problem in str(refused.value)
    assert refused.value.format == "json"


def test_a_reference_finds_its_place_however_that_is_written() -> None:
    schema = schema_of({"$defs": {"a/b~c d": {"type": "integer"}}, "$ref": "#/$defs/a~1b~0c%20d"})
    assert schema.check([b"1"]) is None
    assert schema.check([b'"x"']) is not None


def test_a_schema_has_so_many_patterns_and_no_more() -> None:
    def with_patterns(count: int) -> Any:
        return {"properties": {f"p{number}": {"pattern": "a"} for number in range(count)}}

    schema_of(with_patterns(PATTERNS_MAX))
    with pytest.raises(InvalidSchema, match="regular expressions"):
        schema_of(with_patterns(PATTERNS_MAX + 1))


def test_a_schema_is_nested_so_deep_and_no_deeper() -> None:
    def nested(depth: int) -> str:
        return '{"not":' * (depth - 1) + "{}" + "}" * (depth - 1)

    JsonSchema(nested(SCHEMA_NESTING_MAX))
    with pytest.raises(InvalidSchema, match="nested"):
        JsonSchema(nested(SCHEMA_NESTING_MAX + 1))


def test_references_that_double_again_and_again_are_refused_at_once() -> None:
    definitions: dict[str, Any] = {
        f"a{number}": {"anyOf": [{"$ref": f"#/$defs/a{number + 1}"}, {"$ref": f"#/$defs/a{number + 1}"}]}
        for number in range(40)
    }
    definitions["a40"] = {"type": "string"}
    with pytest.raises(InvalidSchema, match=f"{EXPANDED_MAX:,}"):
        schema_of({"$defs": definitions, "$ref": "#/$defs/a0"})


def test_a_schema_that_is_only_itself_is_harmless() -> None:
    assert JsonSchema('{"$ref": "#"}').check([b"1"]) is None
    assert JsonSchema('{"allOf": [{"$ref": "#"}]}').check([b"1"]) is None


def test_a_pattern_takes_linear_time() -> None:
    schema = JsonSchema('{"pattern": "^(a+)+$"}')
    began = time.monotonic()
    assert schema.check([b'"' + b"a" * 100_000 + b'b"']) is not None
    assert time.monotonic() - began < 5


def test_a_document_that_fits_nowhere_in_alternatives_within_each_other_is_told_of_soon() -> None:
    def add(kind: str) -> Any:
        return {"type": "object", "properties": {"kind": {"const": kind}, "of": {"$ref": "#"}}, "required": ["of"]}

    schema = schema_of({"anyOf": [add("plus"), add("minus"), add("times"), {"type": "integer"}]})
    document: Any = "no number"
    for _ in range(100):
        document = {"kind": "plus", "of": document}
    began = time.monotonic()
    assert schema.check([json.dumps(document).encode()]) is not None
    assert time.monotonic() - began < 5


def test_a_payload_is_nested_so_deep_and_no_deeper() -> None:
    schema = JsonSchema("true")
    deepest, deeper = (
        b"[" * JSON_DEPTH_MAX + b"]" * JSON_DEPTH_MAX,
        b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1),
    )
    assert schema.check([deepest]) is None
    misfit = schema.check([deeper])
    assert misfit is not None
    assert "nested" in misfit.problem
    assert schema.check([b'["' + b"[" * 1_000 + b'"]']) is None


def test_numbers_that_have_no_fractions_left_are_no_multiples_of_one() -> None:
    schema = JsonSchema('{"items": {"multipleOf": 0.01}}')
    assert schema.check([b"[12.34, 5, 99999999999999.25]"]) is None
    for payload in (b"[12.345]", b"[1e300]"):
        assert schema.check([payload]) is not None
    assert JsonSchema('{"items": {"multipleOf": 2}}').check([b"[1e300]"]) is None


def test_of_a_name_that_is_there_twice_the_last_counts() -> None:
    assert JsonSchema('{"properties": {"a": {"type": "string"}}}').check([b'{"a": 1, "a": "x"}']) is None


def test_schemas_that_say_the_same_are_the_same() -> None:
    one, same = JsonSchema('{"type": "object", "title": "t"}'), JsonSchema('{ "title":"t",\n"type":"object" }')
    assert one.identity == same.identity
    assert one.identity != JsonSchema('{"type": "object"}').identity


def test_names_of_fields_are_cut_where_they_are_too_long() -> None:
    misfit = JsonSchema('{"additionalProperties": false}').check([json.dumps({"x" * 10_000: 1}).encode()])
    assert misfit is not None
    assert len(misfit.path) <= 200
