"""Whether every document that fits one JSON Schema fits another: what is accepted is proven, keyword by keyword.

The schema that reads is taken apart: each keyword of it must follow from what the written schema says as a whole. What
cannot be shown by these rules is refused, even where it is true; docs/schemas.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sealane.schemas.json.comparison import COMPARISONS_MAX, Problems, Steps, TooMany
from sealane.schemas.json.compiling import alone
from sealane.schemas.json.document import Document
from sealane.schemas.json.keywords import CONSTRAINTS
from sealane.schemas.json.part_rules import PartRules
from sealane.schemas.json.simple_rules import (
    Said,
    enumerated,
    implies,
    kinds_about,
    kinds_of,
    named_kinds,
    same_value,
)
from sealane.schemas.paths import path_of
from sealane.schemas.schema import Problem

_SIMPLE = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("pattern", "format", "contentEncoding", "contentMediaType", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties"),
    }
)
_NOT_ASSERTED = frozenset({"format", "contentEncoding", "contentMediaType"})
"""Since draft 2019-09 these are notes for readers."""
_GROUPS = {
    **dict.fromkeys(("contains", "minContains", "maxContains"), ("contains", "minContains", "maxContains")),
    **dict.fromkeys(("if", "then", "else"), ("if", "then", "else")),
    **{name: (name,) for name in ("not", "dependentRequired", "dependentSchemas", "dependencies")},
}
"""Keywords that are compared as a whole, with those that they mean something together with."""


class Containment(PartRules):
    """Of one schema in another, once."""

    def __init__(self, reader: Document, written: Document) -> None:
        super().__init__(reader, written)
        self._assumed: dict[tuple[int, frozenset[int]], int] = {}
        """Pairs that are being compared, by how deep in a document they were met: further down they may be assumed."""
        self._rules: dict[str, Callable[[dict[str, Any], Said, Steps], Problems]] = {
            "type": self._type,
            "enum": self._enum,
            "const": self._const,
            "allOf": self._all_of,
            "anyOf": self._any_of,
            "oneOf": self._one_of,
            "required": self._required,
            "properties": self._properties,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "propertyNames": self._property_names,
            "prefixItems": self._items,
            "items": self._items,
            "additionalItems": self._items,
        }

    def problems(self) -> Problems:
        """Where a document could fit the written schema and not the one that reads; none if that cannot be."""
        if same_value(self._reader.root, self._written.root):
            return []
        if self._reader.draft != self._written.draft:
            return [Problem("$", "its draft ($schema) is another one, by which the same keywords mean other things")]
        try:
            return self._compare(self._reader.root, self._together([self._written.root]), ())
        except (TooMany, RecursionError):
            return [Problem("$", f"comparing takes more than {COMPARISONS_MAX:,} steps; make the schema simpler")]

    # --- schemas as a whole -------------------------------------------------------------------------------------------

    def _compare(self, reader: Any, said: Said | None, steps: Steps) -> Problems:
        self._spend()
        if said is None or reader is True or reader == {}:
            return []
        if reader is False:
            return [Problem(path_of(steps), "nothing may be there, and what is to be read may have something")]
        pair = (id(reader), frozenset(map(id, said)))
        if pair in self._assumed:
            if len(steps) > self._assumed[pair]:
                return []
            return [Problem(path_of(steps), "its references lead back to where they are")]
        if any(self._same(reader, schema) for schema in said):
            return []
        self._assumed[pair] = len(steps)
        try:
            return self._compare_keywords(reader, said, steps)
        finally:
            del self._assumed[pair]

    def _compare_keywords(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        found: Problems = []
        if "$ref" in reader:
            found += self._compare(self._reader.at(reader["$ref"]), said, steps)
            if self._reader.ignores_beside_reference:
                return found
        if {"unevaluatedItems", "unevaluatedProperties"} & reader.keys():
            return [*found, Problem(path_of(steps), "it has unevaluated…, and is compared by being the same")]
        told: set[Any] = set()
        for keyword in reader:
            if keyword not in CONSTRAINTS or keyword == "$ref":
                continue
            what = self._rules.get(keyword) or _GROUPS.get(keyword) or keyword
            if what not in told:
                told.add(what)
                found += self._keyword(keyword, reader, said, steps)
        return found

    def _keyword(
        self,
        keyword: str,
        reader: dict[str, Any],
        said: Said,
        steps: Steps,
        apart: frozenset[tuple[int, str]] = frozenset(),
    ) -> Problems:
        """`apart` are the alternatives that are looked at one by one already."""
        if not kinds_about(keyword) & kinds_of(said):
            return []
        found = self._rule(keyword, reader, said, steps)
        if not found:
            return found
        # What does not follow from the whole may follow from each alternative that is left.
        for place, schema in enumerate(said):
            for name in ("anyOf", "oneOf"):
                if name in schema and (id(schema), name) not in apart:
                    rest = self._made.setdefault(
                        (id(schema), name), {key: schema[key] for key in schema if key != name}
                    )
                    others = [*said[:place], rest, *said[place + 1 :]]
                    now_apart = apart | {(id(schema), name)}
                    if self._follows_from_each(keyword, reader, schema[name], others, steps, now_apart):
                        return []
        return found

    def _follows_from_each(
        self,
        keyword: str,
        reader: dict[str, Any],
        branches: list[Any],
        rest: Said,
        steps: Steps,
        apart: frozenset[tuple[int, str]],
    ) -> bool:
        for branch in branches:
            self._spend()
            also = self._together([*rest, branch])
            if also is not None and self._keyword(keyword, reader, also, steps, apart):
                return False
        return True

    def _rule(self, keyword: str, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        if keyword in self._rules:
            return self._rules[keyword](reader, said, steps)
        if keyword in _GROUPS:
            group = _GROUPS[keyword]
            if any(all(self._same(reader.get(name), schema.get(name)) for name in group) for schema in said):
                return []
            return [Problem(path_of(steps), f"`{keyword}` is compared by being the same, and is not")]
        if keyword in _NOT_ASSERTED and not self._reader.ignores_beside_reference:
            return []
        return self._simple(keyword, reader[keyword], said, steps)

    def _simple(self, keyword: str, value: Any, said: Said, steps: Steps) -> Problems:
        values = enumerated(said)
        if values is not None and keyword in _SIMPLE:
            checks = alone(keyword, msgspec.json.encode(value), self._draft).is_valid
            if all(map(checks, values)):
                return []
        if implies(said, keyword, value):
            return []
        shown = msgspec.json.encode(value).decode()
        text = f"`{keyword}` {shown if len(shown) <= 60 else ''}".rstrip()
        return [Problem(path_of(steps), f"{text} does not follow from what is to be read")]

    # --- any value ----------------------------------------------------------------------------------------------------

    def _type(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        taken, possible = kinds_of([{"type": reader["type"]}]), kinds_of(said)
        if possible <= taken:
            return []
        return [
            Problem(path_of(steps), f"it must be {named_kinds(taken)}, and what is read may be {named_kinds(possible)}")
        ]

    def _enum(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        return self._one_of_values(reader["enum"], said, steps)

    def _const(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        return self._one_of_values([reader["const"]], said, steps)

    def _one_of_values(self, taken: list[Any], said: Said, steps: Steps) -> Problems:
        possible = enumerated(said)
        if possible is None and kinds_of(said) == {"null"}:
            possible = [None]
        if possible is not None and all(any(same_value(each, known) for known in taken) for each in possible):
            return []
        return [Problem(path_of(steps), f"it must be one of {len(taken)} values, and may be others")]

    def _all_of(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        return [problem for branch in reader["allOf"] for problem in self._compare(branch, said, steps)]

    def _any_of(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        return self._one_branch("anyOf", reader, said, steps)

    def _one_of(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        if any("oneOf" in schema and self._same(reader["oneOf"], schema["oneOf"]) for schema in said):
            return []
        if self._are_disjoint(reader["oneOf"]):
            return self._one_branch("oneOf", reader, said, steps)
        return [Problem(path_of(steps), "the alternatives of `oneOf` are not the same, nor told apart by their types")]

    def _one_branch(self, keyword: str, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        tried = [self._compare(branch, said, steps) for branch in reader[keyword]]
        if not all(tried):
            return []
        if len(tried) == 1:
            return tried[0]
        return [Problem(path_of(steps), f"no alternative of `{keyword}` takes all that is to be read")]

    def _are_disjoint(self, branches: list[Any]) -> bool:
        """Whether no value can fit two of them, by its type."""
        is_alone = self._reader.ignores_beside_reference
        seen: frozenset[str] = frozenset()
        for branch in branches:
            while isinstance(branch, dict) and "$ref" in branch and (is_alone or len(branch) == 1):
                branch = self._reader.at(branch["$ref"])
                self._spend()
            kinds = kinds_of([branch] if isinstance(branch, dict) else [])
            if kinds & seen:
                return False
            seen |= kinds
        return True
