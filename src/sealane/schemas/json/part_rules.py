"""Rules about what is within objects and lists: properties by name or pattern, items by place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sealane.schemas.json.comparison import Comparison, Problems, Steps
from sealane.schemas.json.compiling import alone
from sealane.schemas.json.simple_rules import Said
from sealane.schemas.paths import ANY, path_of
from sealane.schemas.schema import Problem

_TEXT = {"type": "string"}


class PartRules(Comparison):
    """Each rule says why a keyword of the schema that reads does not follow; see `Containment`."""

    # --- objects ------------------------------------------------------------------------------------------------------

    def _required(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        known = {name for schema in said for name in schema.get("required", ())}
        return [
            Problem(path_of((*steps, name)), "it is required, and may be missing in what is to be read")
            for name in reader["required"]
            if name not in known
        ]

    def _properties(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        found: Problems = []
        for name, schema in reader["properties"].items():
            known = self._of_field(said, name, ())
            problems = self._compare(schema, known, (*steps, name))
            if problems and known == []:
                text = (
                    "what is to be read may have anything there, since its schema lets fields be that it does not name"
                )
                problems = [Problem(path_of((*steps, name)), text)]
            found += problems
        return found

    def _of_field(self, said: Said, name: str | None, passed_over: Iterable[str]) -> list[dict[str, Any]] | None:
        """What is said of the values of a field, or of those fields that nothing names (None).

        `passed_over` are patterns that its name is known not to match.
        """
        found: list[Any] = []
        for schema in said:
            patterns, others = schema.get("patternProperties", {}), schema.get("additionalProperties", True)
            if name is not None:
                named = [schema["properties"][name]] if name in schema.get("properties", {}) else []
                named += [each for pattern, each in patterns.items() if self._matches(pattern, name)]
                found += named or [others]
                continue
            possible = [each for pattern, each in patterns.items() if pattern not in passed_over]
            if possible:
                # Such a name matches a pattern, or else is one of the others.
                made_of = (id(schema), frozenset(passed_over))
                others = self._made.setdefault(made_of, {"anyOf": [*possible, others]})
            found.append(others)
        return self._together(found)

    def _matches(self, pattern: str, name: str) -> bool:
        matches: bool = alone("pattern", msgspec.json.encode(pattern), self._draft).is_valid(name)
        return matches

    def _pattern_properties(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        found: Problems = []
        for pattern, schema in reader["patternProperties"].items():
            same = [each["patternProperties"][pattern] for each in said if pattern in each.get("patternProperties", {})]
            if same:
                found += self._compare(schema, self._together(same), (*steps, ANY))
                continue
            names = {name for each in said for name in each.get("properties", {})}
            for name in sorted(names):
                if self._matches(pattern, name):
                    found += self._compare(schema, self._of_field(said, name, ()), (*steps, name))
            found += self._compare(schema, self._of_field(said, None, ()), (*steps, ANY))
        return found

    def _additional_properties(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        schema, patterns = reader["additionalProperties"], reader.get("patternProperties", {})
        names = {name for each in said for name in each.get("properties", {})} - reader.get("properties", {}).keys()
        found: Problems = []
        for name in sorted(names):
            if not any(self._matches(pattern, name) for pattern in patterns):
                found += self._compare(schema, self._of_field(said, name, patterns), (*steps, name))
        return found + self._compare(schema, self._of_field(said, None, patterns), (*steps, ANY))

    def _property_names(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        known = self._together(each["propertyNames"] for each in said if "propertyNames" in each)
        if known is not None:
            known.append(_TEXT)
        return self._compare(reader["propertyNames"], known, (*steps, ANY))

    # --- lists --------------------------------------------------------------------------------------------------------

    def _items(self, reader: dict[str, Any], said: Said, steps: Steps) -> Problems:
        first, rest = _list_parts(reader, self._reader.draft)
        known = [_list_parts(each, self._written.draft) for each in said]
        found: Problems = []
        places = max([len(first), *(len(each) for each, _ in known)])
        for place in range(places):
            schema = first[place] if place < len(first) else rest
            there = self._together(each[place] if place < len(each) else others for each, others in known)
            found += self._compare(schema, there, (*steps, place))
        return found + self._compare(rest, self._together(others for _, others in known), (*steps, ANY))


def _list_parts(schema: dict[str, Any], draft: int) -> tuple[list[Any], Any]:
    """What is said of the first items, one by one, and of all others."""
    if draft >= 2020:
        return schema.get("prefixItems", []), schema.get("items", True)
    items = schema.get("items", True)
    return (items, schema.get("additionalItems", True)) if isinstance(items, list) else ([], items)
