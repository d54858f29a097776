"""Which JSON Schema may follow which: the rules of docs/schemas.md, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sealane.schemas import incompatibilities
from sealane.schemas.json.comparison import COMPARISONS_MAX
from sealane.schemas.json.json_schema import JsonSchema

INTEGER, NUMBER, STRING, NULL = ({"type": name} for name in ("integer", "number", "string", "null"))


def an_object(closed: bool = False, **rest: Any) -> dict[str, Any]:
    return {"type": "object", **({"additionalProperties": False} if closed else {}), **rest}


def tree(value: Any) -> dict[str, Any]:
    children = {"type": "array", "items": {"$ref": "#"}}
    return an_object(closed=True, properties={"v": value, "c": children, "up": {"anyOf": [NULL, {"$ref": "#"}]}})


def backward(old: Any, new: Any) -> list[str]:
    return incompatibilities("backward", JsonSchema(json.dumps(old)), JsonSchema(json.dumps(new)))


def forward(old: Any, new: Any) -> list[str]:
    return incompatibilities("forward", JsonSchema(json.dumps(old)), JsonSchema(json.dumps(new)))


WIDER: list[tuple[Any, ...]] = [
    ("a type that takes in more", {"properties": {"a": INTEGER}}, {"properties": {"a": NUMBER}}),
    ("one more type", STRING, {"type": ["string", "null"]}),
    ("an optional property of a closed object", an_object(True), an_object(True, properties={"a": STRING})),
    ("a property that an open object no longer names", an_object(properties={"a": STRING}), an_object()),
    ("a property that is no longer required", an_object(required=["a", "b"]), an_object(required=["a"])),
    ("an object that was closed", an_object(True, properties={"a": STRING}), an_object(properties={"a": STRING})),
    ("one more value", {"enum": ["a", "b"]}, {"enum": ["c", "b", "a"]}),
    ("any text instead of some", {"enum": ["a", "b"]}, STRING),
    ("a value that was the only one", {"const": 3}, {"type": "integer", "minimum": 1}),
    ("a lower bound that is lower", {"minimum": 2}, {"minimum": 1}),
    ("a bound that takes in its edge", {"exclusiveMaximum": 5}, {"maximum": 5}),
    ("texts that may be longer", {"maxLength": 3}, {"maxLength": 4}),
    ("multiples of less", {"multipleOf": 6}, {"multipleOf": 3}),
    ("no pattern any more", {"type": "string", "pattern": "^a"}, STRING),
    ("items of more", {"items": INTEGER}, {"items": NUMBER}),
    ("first items of more", {"prefixItems": [INTEGER], "items": STRING}, {"prefixItems": [NUMBER], "items": True}),
    ("one more alternative", {"anyOf": [INTEGER, STRING]}, {"anyOf": [INTEGER, STRING, NULL]}),
    ("one more alternative of another type", {"oneOf": [INTEGER, STRING]}, {"oneOf": [STRING, INTEGER, NULL]}),
    ("alternatives within one type", {"anyOf": [{"minimum": 5}, {"minimum": 3}]}, {"minimum": 3}),
    ("fewer rules that hold together", {"allOf": [INTEGER, {"minimum": 1}]}, INTEGER),
    ("rules that hold together", {"type": "integer", "minimum": 2}, {"allOf": [INTEGER, {"minimum": 1}]}),
    (
        "a definition that takes in more",
        *({"$defs": {"d": d}, "items": {"$ref": "#/$defs/d"}} for d in (INTEGER, NUMBER)),
    ),
    (
        "a definition in place of what it says",
        {"items": INTEGER},
        {"$defs": {"d": INTEGER}, "items": {"$ref": "#/$defs/d"}},
    ),
    ("a recursive schema", tree(INTEGER), tree(NUMBER)),
    ("names by a pattern, closed", *(an_object(True, patternProperties={"^x-": v}) for v in (INTEGER, NUMBER))),
    (
        "names that a pattern takes in",
        an_object(True, properties={"x-a": STRING}),
        an_object(True, patternProperties={"^x-": STRING}),
    ),
    (
        "what is only for people",
        {"title": "a", "type": "string"},
        {"description": "b", "type": "string", "default": ""},
    ),
    ("anything", an_object(required=["a"]), {}),
    ("a rule about what it cannot be", STRING, {"type": "string", "minimum": 5, "required": ["a"]}),
    ("the same condition", *({"if": INTEGER, "then": {"minimum": 1}, "maximum": m} for m in (5, 9))),
]


@pytest.mark.parametrize(("old", "new"), [pytest.param(old, new, id=name) for name, old, new in WIDER])
def test_what_takes_in_all_that_fitted_is_backward_compatible(old: Any, new: Any) -> None:
    assert backward(old, new) == []
    assert forward(new, old) == []


NARROWER: list[tuple[Any, ...]] = [
    (
        "a type that takes in less",
        {"properties": {"a": NUMBER}},
        {"properties": {"a": INTEGER}},
        "$.a: it must be integer",
    ),
    (
        "a property that is required now",
        an_object(True, properties={"a": STRING}),
        an_object(True, properties={"a": STRING}, required=["a"]),
        "$.a: it is required",
    ),
    (
        "a property that an open object names now",
        an_object(),
        an_object(properties={"a": STRING}),
        "$.a: what is to be read may have anything there",
    ),
    (
        "a property that a closed object no longer has",
        an_object(True, properties={"a": STRING}),
        an_object(True),
        "$.a: nothing may be there",
    ),
    ("an object that is closed now", an_object(), an_object(True), "$[*]: nothing may be there"),
    ("a value less", {"enum": [1, 2]}, {"enum": [1]}, "$: it must be one of 1 values"),
    ("true is not 1", {"const": True}, {"const": 1}, "$: it must be one of 1 values"),
    ("a bound that leaves out its edge", {"maximum": 5}, {"exclusiveMaximum": 5}, "`exclusiveMaximum` 5"),
    ("another pattern", {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}, '`pattern` "^b"'),
    (
        "items of less",
        {"items": {"properties": {"a": NUMBER}}},
        {"items": {"properties": {"a": INTEGER}}},
        "$[*].a: it must be integer",
    ),
    (
        "a first item of less",
        {"items": NUMBER},
        {"prefixItems": [INTEGER], "items": NUMBER},
        "$[0]: it must be integer",
    ),
    ("an alternative less", {"anyOf": [INTEGER, STRING]}, {"anyOf": [INTEGER, NULL]}, "$: no alternative of `anyOf`"),
    ("alternatives that may both fit", {"oneOf": [INTEGER]}, {"oneOf": [INTEGER, NUMBER]}, "`oneOf`"),
    ("a recursive schema", tree(NUMBER), tree(INTEGER), "$.v: it must be integer"),
    (
        "another condition",
        {"if": INTEGER, "then": NULL},
        {"if": STRING, "then": NULL},
        "`if` is compared by being the same",
    ),
    ("what must not be", {}, {"not": STRING}, "`not` is compared by being the same"),
    ("what was not looked at", {}, {"unevaluatedProperties": False}, "unevaluated"),
    ("a draft", {"$schema": "http://json-schema.org/draft-07/schema#"}, {"type": "string"}, "its draft"),
    ("items that must be different", {"type": "array"}, {"type": "array", "uniqueItems": True}, "`uniqueItems` true"),
    ("names of another form", an_object(), an_object(propertyNames={"maxLength": 3}), "$[*]: `maxLength` 3"),
    (
        "a format of an older draft",
        *(
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "format": f}
            for f in ("date", "email")
        ),
        '`format` "email"',
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "problem"), [pytest.param(old, new, problem, id=name) for name, old, new, problem in NARROWER]
)
def test_what_leaves_out_something_that_fitted_is_not(old: Any, new: Any, problem: str) -> None:
    told = backward(old, new)
    assert any(problem in each for each in told), told
    assert all(each.endswith("(backward)") for each in told)
    assert any(problem in each for each in forward(new, old))


def test_a_format_is_a_note_in_newer_drafts() -> None:
    assert backward({"type": "string", "format": "date"}, {"type": "string", "format": "email"}) == []


def test_beside_a_reference_nothing_counts_in_older_drafts() -> None:
    def schema(**beside: Any) -> Any:
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"d": STRING},
            "items": {"$ref": "#/definitions/d", **beside},
        }

    assert backward(schema(maxLength=3), schema(maxLength=2)) == []


def test_every_place_is_told_and_the_rest_is_counted() -> None:
    names = [f"p{number}" for number in range(50)]
    told = backward(an_object(), an_object(required=names))
    assert len(told) == 21
    assert told[-1] == "and 30 more"


def test_comparing_ends_soon_and_says_so() -> None:
    def many(*more: str) -> Any:
        return {
            "allOf": [
                {"anyOf": [{"required": [f"{name}{number}"]} for name in ("a", "b", *more)]} for number in range(20)
            ]
        }

    (told,) = backward(many(), many("c"))
    assert f"{COMPARISONS_MAX:,}" in told
