"""From a JSON Schema to the columns of what fits it. What could be of several types has no column, and is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sealane.schemas.json.document import Document
from sealane.schemas.json.simple_rules import Kinds, kinds_of
from sealane.schemas.paths import ANY, Step, path_of
from sealane.spark.errors import InvalidOption
from sealane.spark.values.spark_type import check_nesting

_SIMPLE: dict[Kinds, pa.DataType] = {
    frozenset(): pa.null(),
    frozenset({"boolean"}): pa.bool_(),
    frozenset({"string"}): pa.utf8(),
    frozenset({"integer"}): pa.int64(),
    frozenset({"integer", "fraction"}): pa.float64(),
    frozenset({"fraction"}): pa.float64(),
}
_LIST, _OBJECT = frozenset({"array"}), frozenset({"object"})

Steps = tuple[Step, ...]


def struct_of_json_schema(document: Document) -> pa.StructType:
    """The struct that payloads are. Raises `InvalidOption` for a schema that does not say it."""
    found = _type(document, document.root, (), frozenset())
    if not pa.types.is_struct(found):
        raise _refused((), "it must be an object with properties, which become columns")
    return found


def _type(document: Document, schema: Any, steps: Steps, followed: frozenset[str]) -> pa.DataType:
    check_nesting(len(steps))
    if not isinstance(schema, dict):
        raise _refused(steps, "it may be anything, or nothing")
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in followed:
            raise _refused(steps, "it holds itself; recursive schemas have no columns")
        return _type(document, document.at(reference), steps, followed | {reference})
    for keyword in ("anyOf", "oneOf"):
        others = [each for each in schema.get(keyword, ()) if each != {"type": "null"}]
        if keyword in schema and len(others) == 1:
            return _type(document, others[0], steps, followed)
    kinds = kinds_of([schema]) - {"null"}
    if kinds in _SIMPLE:
        return _SIMPLE[kinds]
    if kinds == _LIST:
        if "items" not in schema or not isinstance(schema["items"], dict) or "prefixItems" in schema:
            raise _refused(steps, "its `items` do not say of one type what they are")
        return pa.list_(_type(document, schema["items"], (*steps, ANY), followed))
    if kinds == _OBJECT:
        return _object(document, schema, steps, followed)
    raise _refused(steps, "it may be of several types")


def _object(document: Document, schema: dict[str, Any], steps: Steps, followed: frozenset[str]) -> pa.DataType:
    named, others = schema.get("properties"), schema.get("additionalProperties")
    if named:
        return pa.struct([(name, _type(document, each, (*steps, name), followed)) for name, each in named.items()])
    if isinstance(others, dict):
        return pa.map_(pa.utf8(), _type(document, others, (*steps, ANY), followed))
    raise _refused(steps, "it names no `properties`")


def _refused(steps: Steps, problem: str) -> InvalidOption:
    hint = "give valueFormat and valueSchema instead"
    return InvalidOption("valueSchemaFrom", f"the topic's schema has no columns at {path_of(steps)}: {problem}; {hint}")
