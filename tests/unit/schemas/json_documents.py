"""Small JSON Schemas and small documents, so that one often fits the other: for tests of any of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "x-1")
PATTERNS = ("^a", "^x", "b")
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
SMALL = st.integers(0, 3)

scalars: st.SearchStrategy[Any] = st.sampled_from([None, True, False, -1, 0, 1, 2, 3, 0.5, 1.0, "", "a", "ab", "bb"])
documents: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda within: st.one_of(
        st.lists(within, max_size=3), st.dictionaries(st.sampled_from([*NAMES, "c"]), within, max_size=3)
    ),
    max_leaves=6,
)


def schemas() -> st.SearchStrategy[Any]:
    """Documents with one definition, `#/$defs/d`, to which parts of them refer."""
    return st.builds(
        lambda root, d: {**root, "$defs": {"d": d}} if isinstance(root, dict) else root, _parts(), _parts()
    )


def _parts() -> st.SearchStrategy[Any]:
    return st.recursive(_leaves(), _composed, max_leaves=5)


def _leaves() -> st.SearchStrategy[Any]:
    simple = st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS), min_size=1, unique=True)),
            "minimum": st.integers(-1, 2),
            "exclusiveMaximum": st.integers(0, 3),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": SMALL,
            "maxLength": SMALL,
            "pattern": st.sampled_from(PATTERNS),
            "minItems": SMALL,
            "maxItems": SMALL,
            "uniqueItems": st.booleans(),
            "minProperties": SMALL,
            "maxProperties": SMALL,
            "required": st.lists(st.sampled_from(NAMES), unique=True),
            "title": st.just("for people"),
        },
    )
    return st.one_of(
        simple,
        st.booleans(),
        st.builds(lambda values: {"enum": values}, st.lists(documents, min_size=1, max_size=3)),
        st.builds(lambda value: {"const": value}, scalars),
        st.sampled_from([{"$ref": "#/$defs/d"}, {"$ref": "#"}]),
    )


def _composed(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(part, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from(NAMES), part, max_size=3)},
            optional={
                "type": st.just("object"),
                "additionalProperties": part,
                "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), part, max_size=2),
                "propertyNames": part,
                "required": st.lists(st.sampled_from(NAMES), unique=True),
            },
        ),
        st.fixed_dictionaries(
            {"items": part}, optional={"type": st.just("array"), "prefixItems": some, "minItems": SMALL}
        ),
        st.builds(lambda branches: {"anyOf": branches}, some),
        st.builds(lambda branches: {"oneOf": branches}, some),
        st.builds(lambda branches: {"allOf": branches}, some),
        st.builds(lambda excluded: {"not": excluded}, part),
        st.builds(lambda one, then, other: {"if": one, "then": then, "else": other}, part, part, part),
        st.builds(lambda schema, minimum: {"contains": schema, "minContains": minimum}, part, SMALL),
    )


@st.composite
def changed(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with a change or two: mostly such that another one could be made of it by hand."""
    for _ in range(draw(st.integers(1, 2))):
        schema = _changed_once(draw, schema)
    return schema


def _changed_once(draw: st.DrawFn, schema: Any) -> Any:
    if not isinstance(schema, dict) or not schema or draw(st.integers(0, 5)) == 0:
        return draw(st.one_of(_leaves(), st.just(True), st.just(schema)))
    keyword = draw(st.sampled_from(sorted(schema)))
    value = schema[keyword]
    if draw(st.integers(0, 3)) == 0 and keyword != "$defs":
        return {name: each for name, each in schema.items() if name != keyword}
    if isinstance(value, dict) and keyword in ("properties", "patternProperties", "$defs") and value:
        name = draw(st.sampled_from(sorted(value)))
        return {**schema, keyword: {**value, name: _changed_once(draw, value[name])}}
    if isinstance(value, dict) and keyword != "const":
        return {**schema, keyword: _changed_once(draw, value)}
    if isinstance(value, list) and value and keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        place = draw(st.integers(0, len(value) - 1))
        return {**schema, keyword: [*value[:place], _changed_once(draw, value[place]), *value[place + 1 :]]}
    if isinstance(value, int) and not isinstance(value, bool) and keyword not in ("const", "multipleOf"):
        return {**schema, keyword: max(0, value + draw(st.sampled_from([-1, 1])))}
    return schema
