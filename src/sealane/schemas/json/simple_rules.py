"""Rules about single values: whether all that some schemas say together implies one keyword of another schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sealane.schemas.json.keywords import LISTS, NUMBERS, OBJECTS, TEXTS

Said = Sequence[dict[str, Any]]
"""Schemas that hold together."""
Kinds = frozenset[str]

_ATOMS: dict[str, Kinds] = {
    **{name: frozenset({name}) for name in ("null", "boolean", "object", "array", "string", "integer")},
    "number": frozenset({"integer", "fraction"}),
}
ALL_KINDS: Kinds = frozenset().union(*_ATOMS.values())


def kinds_of(said: Said) -> Kinds:
    """The types that a value may have; a number without a fractional part is an integer, however it is written."""
    found = ALL_KINDS
    for schema in said:
        if "type" in schema:
            named = schema["type"]
            found &= frozenset().union(*(_ATOMS[name] for name in ([named] if isinstance(named, str) else named)))
        values = enumerated([schema])
        if values is not None:
            found &= frozenset(map(_kind, values))
    return found


def kinds_about(keyword: str) -> Kinds:
    """The types of values that a keyword says something about."""
    if keyword in NUMBERS:
        return _ATOMS["number"]
    if keyword in TEXTS:
        return _ATOMS["string"]
    if keyword in LISTS:
        return _ATOMS["array"]
    return _ATOMS["object"] if keyword in OBJECTS else ALL_KINDS


def enumerated(said: Said) -> list[Any] | None:
    """All values that are possible, where they are listed."""
    for schema in said:
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(schema["enum"])
    return None


def named_kinds(kinds: Kinds) -> str:
    """For people."""
    shown = set(kinds)
    if _ATOMS["number"] <= shown:
        shown = shown - _ATOMS["number"] | {"number"}
    return " or ".join(sorted(shown)) or "nothing"


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: true is not 1, and the order of names is nothing."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def implies(said: Said, keyword: str, value: Any) -> bool:
    """Whether a value that keeps all that is said keeps this keyword too; not every true case is found."""
    if keyword in ("pattern", "format", "contentEncoding", "contentMediaType"):
        return any(keyword in schema and same_value(schema[keyword], value) for schema in said)
    if keyword == "uniqueItems":
        return not value or any(schema.get(keyword) is True or schema.get("maxItems", 2) <= 1 for schema in said)
    if keyword == "multipleOf":
        return _implies_multiple(said, value)
    if keyword in _BOUNDS:
        return _BOUNDS[keyword](said, value)
    if keyword.startswith("min"):
        least = [schema[keyword] for schema in said if keyword in schema]
        if keyword == "minProperties":
            least.append(len({name for schema in said for name in schema.get("required", ())}))
        return value <= max(least, default=0)
    most = [schema[keyword] for schema in said if keyword in schema]
    return bool(most) and min(most) <= value


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "fraction"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _implies_multiple(said: Said, value: Any) -> bool:
    if value == 1 and "fraction" not in kinds_of(said):
        return True
    for schema in said:
        factor = schema.get("multipleOf")
        if factor == value:
            return True
        if isinstance(factor, int) and isinstance(value, int) and factor % value == 0:
            return True
    return False


def _at_least(said: Said, bound: float) -> bool:
    return any(schema[name] >= bound for schema in said for name in ("minimum", "exclusiveMinimum") if name in schema)


def _above(said: Said, bound: float) -> bool:
    return any(
        schema.get("exclusiveMinimum", -_INFINITE) >= bound or schema.get("minimum", -_INFINITE) > bound
        for schema in said
    )


def _at_most(said: Said, bound: float) -> bool:
    return any(schema[name] <= bound for schema in said for name in ("maximum", "exclusiveMaximum") if name in schema)


def _below(said: Said, bound: float) -> bool:
    return any(
        schema.get("exclusiveMaximum", _INFINITE) <= bound or schema.get("maximum", _INFINITE) < bound
        for schema in said
    )


_INFINITE = float("inf")
_BOUNDS: dict[str, Callable[[Said, float], bool]] = {
    "minimum": _at_least,
    "exclusiveMinimum": _above,
    "maximum": _at_most,
    "exclusiveMaximum": _below,
}
