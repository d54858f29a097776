"""Where a document breaks a schema: a way down to the first field that does not fit, and what is expected of it.

The library can list errors itself, in a time that grows beyond all bounds with alternatives within each other, and with
the values in them. Whether a value fits a part of the schema it tells at once, so that is all it is asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sealane.schemas.json.compiling import alone, parts
from sealane.schemas.json.document import DRAFT_2020_12, Document, pointer_of, written
from sealane.schemas.json.keywords import NUMBERS, TEXTS, Pointer
from sealane.schemas.paths import Step

Steps = tuple[Step, ...]
Found = tuple[Steps, str]
"""Where in the payload, and what is expected there."""

_SHOWN_CHARACTERS = 60
_ALONE = (
    NUMBERS | TEXTS | {"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "dependentRequired"}
)
"""Keywords that mean the same by themselves."""
_TOGETHER = frozenset({"contains", "unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "dependencies"})
_DEPTH = 32
"""Fields within fields that are looked into: each of them takes as long as checking all that is in it."""


def locate(document: Document, identity: bytes, value: Any) -> Found:
    """The first place of a value, which does not fit the document, that is at fault."""
    found = _Search(document, parts(identity)).within((), document.root, value, ())
    return found or ((), "it does not fit the schema")


class _Search:
    def __init__(self, document: Document, parts: Any) -> None:
        self._document = document
        self._parts = parts
        self._seen: set[tuple[Pointer, int]] = set()
        self._ways: tuple[Callable[[Pointer, dict[str, Any], Any, Steps], Found | None], ...] = (
            self._by_type,
            self._by_reference,
            self._in_object,
            self._in_list,
            self._by_branches,
            self._by_condition,
            self._by_keyword,
        )

    def within(self, pointer: Pointer, schema: Any, value: Any, steps: Steps) -> Found | None:
        """The place at fault if the value does not fit this part of the schema."""
        place = (pointer, id(value))
        if self._fits(pointer, value) or place in self._seen:
            return None
        self._seen.add(place)
        if len(steps) >= _DEPTH:
            return steps, "something within it does not fit the schema"
        if not isinstance(schema, dict):
            return steps, "it must not be there"
        for way in self._ways:
            found = way(pointer, schema, value, steps)
            if found is not None:
                return found
        return steps, "it does not fit what the schema says here"

    def _fits(self, pointer: Pointer, value: Any) -> bool:
        validator = None if self._parts is None else self._parts.get(written(pointer))
        return validator is not None and validator.is_valid(value)

    # --- one way after the other --------------------------------------------------------------------------------------

    def _by_type(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        if "type" in schema and not self._alone("type", schema["type"], value):
            kinds = schema["type"]
            return steps, f"it must be of type {' or '.join(kinds) if isinstance(kinds, list) else kinds}"
        if "const" in schema and not self._alone("const", schema["const"], value):
            return steps, "it must be the value that `const` says"
        if "enum" in schema and not self._alone("enum", schema["enum"], value):
            return steps, f"it must be one of the {len(schema['enum'])} values of `enum`"
        return None

    def _by_reference(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        reference = schema.get("$ref")
        if reference is None:
            return None
        return self.within(pointer_of(reference), self._document.at(reference), value, steps)

    def _in_object(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        if not isinstance(value, dict):
            return None
        for name in schema.get("required", ()):
            if name not in value:
                return (*steps, name), "it is required, and missing"
        for way, sub, name in self._fields(schema, value):
            found = self.within(pointer + way, sub, value[name], (*steps, name))
            if found is not None:
                closed = sub is False and way == ("additionalProperties",)
                return (found[0], "the schema has no such property, and allows no others") if closed else found
        if "propertyNames" in schema:
            for name in value:
                if not self._fits((*pointer, "propertyNames"), name):
                    return (*steps, name), "its name is not one that `propertyNames` allows"
        return None

    def _fields(self, schema: dict[str, Any], value: dict[str, Any]) -> Iterator[tuple[Pointer, Any, str]]:
        """For each field of the value: the schemas that are about it."""
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name in value:
            is_known = name in named
            if is_known:
                yield ("properties", name), named[name], name
            for pattern, sub in patterns.items():
                if self._alone("pattern", pattern, name):
                    is_known = True
                    yield ("patternProperties", pattern), sub, name
            if not is_known and "additionalProperties" in schema:
                yield ("additionalProperties",), schema["additionalProperties"], name

    def _in_list(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        if not isinstance(value, list):
            return None
        items = schema.get("items")
        first = schema.get("prefixItems", items if isinstance(items, list) else [])
        keyword = "additionalItems" if isinstance(items, list) else "items"
        for place, item in enumerate(value):
            if place < len(first):
                way: Pointer = ("prefixItems" if "prefixItems" in schema else "items", str(place))
                sub = first[place]
            elif keyword in schema:
                way, sub = (keyword,), schema[keyword]
            else:
                break
            found = self.within(pointer + way, sub, item, (*steps, place))
            if found is not None:
                return found
        return None

    def _by_branches(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        for place, branch in enumerate(schema.get("allOf", ())):
            found = self.within((*pointer, "allOf", str(place)), branch, value, steps)
            if found is not None:
                return found
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword, ())
            fitting = sum(self._fits((*pointer, keyword, str(place)), value) for place in range(len(branches)))
            if branches and not fitting:
                return self._closest(pointer, keyword, branches, value, steps)
            if keyword == "oneOf" and fitting > 1:
                return steps, f"it fits {fitting} of the alternatives of `oneOf`, and may fit one"
        return None

    def _closest(self, pointer: Pointer, keyword: str, branches: list[Any], value: Any, steps: Steps) -> Found:
        """Of alternatives, one of which could be meant by the value's type, that one is told of."""
        meant = [place for place, branch in enumerate(branches) if self._could_mean(branch, value)]
        if len(meant) == 1:
            way = (*pointer, keyword, str(meant[0]))
            found = self.within(way, branches[meant[0]], value, steps)
            if found is not None:
                return found
        return steps, f"it fits none of the {len(branches)} alternatives of `{keyword}`"

    def _could_mean(self, branch: Any, value: Any) -> bool:
        if not isinstance(branch, dict):
            return bool(branch)
        if "$ref" in branch:
            branch = self._document.at(branch["$ref"])
        kinds = branch.get("type") if isinstance(branch, dict) else None
        return kinds is None or self._alone("type", kinds, value)

    def _by_condition(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        if "not" in schema and self._fits((*pointer, "not"), value):
            return steps, "it is what `not` excludes"
        if "if" in schema:
            way = "then" if self._fits((*pointer, "if"), value) else "else"
            if way in schema:
                return self.within((*pointer, way), schema[way], value, steps)
        return None

    def _by_keyword(self, pointer: Pointer, schema: dict[str, Any], value: Any, steps: Steps) -> Found | None:
        for keyword in sorted(_ALONE & schema.keys()):
            if not self._alone(keyword, schema[keyword], value):
                return steps, f"it must keep `{keyword}`{_shown(schema[keyword])}"
        others = sorted(_TOGETHER & schema.keys())
        return (steps, f"it must keep {' and '.join(f'`{keyword}`' for keyword in others)}") if others else None

    def _alone(self, keyword: str, said: Any, value: Any) -> bool:
        """Whether a value keeps one keyword that means the same by itself."""
        root = self._document.root
        draft = root.get("$schema", DRAFT_2020_12) if isinstance(root, dict) else DRAFT_2020_12
        kept: bool = alone(keyword, msgspec.json.encode(said), draft).is_valid(value)
        return kept


def _shown(said: Any) -> str:
    """What the schema says, where it is short."""
    text = msgspec.json.encode(said).decode()
    return f" ({text})" if len(text) <= _SHOWN_CHARACTERS else ""
