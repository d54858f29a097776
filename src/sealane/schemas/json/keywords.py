"""Which keywords of JSON Schema hold schemas, which say something about payloads, and which do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ONE = frozenset(
    {
        *("additionalProperties", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema", "items"),
    }
)
"""Their value is a schema; that of `items` may be a list of them in older drafts."""
SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Their value has schemas by name; that of `dependencies` may have lists of names too."""
DEFINITIONS = frozenset({"$defs", "definitions"})

NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
TEXTS = frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"})
LISTS = frozenset(
    {
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
        *("contains", "minContains", "maxContains", "unevaluatedItems"),
    }
)
OBJECTS = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies"),
        "unevaluatedProperties",
    }
)
ANYTHING = frozenset({"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
CONSTRAINTS = NUMBERS | TEXTS | LISTS | OBJECTS | ANYTHING
"""Whatever else a schema has is for people, or for other programs: validators pass it over."""

Pointer = tuple[str, ...]
"""Where in a document a schema is."""


def schemas_within(schema: Any) -> Iterator[tuple[Pointer, Any]]:
    """The schemas that this one applies to a payload or to parts of it, with the way to each; no definitions."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ONE and isinstance(value, dict | bool):
            yield (keyword,), value
        elif keyword in SEVERAL and isinstance(value, list):
            for place, each in enumerate(value):
                yield (keyword, str(place)), each
        elif keyword in NAMED and isinstance(value, dict):
            for name, each in value.items():
                if isinstance(each, dict | bool):
                    yield (keyword, name), each


def definitions_within(schema: Any) -> Iterator[tuple[Pointer, Any]]:
    if not isinstance(schema, dict):
        return
    for keyword in DEFINITIONS:
        value = schema.get(keyword)
        if isinstance(value, dict):
            for name, each in value.items():
                yield (keyword, name), each
