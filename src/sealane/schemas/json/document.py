"""The text of a JSON Schema: read, and kept within what can be checked in a time that anybody can foresee.

References lead to other places of the same document, and nowhere else: nothing is ever fetched. What would make a
document mean other things than its text says at that place (`$anchor`, `$dynamicRef`, an `$id` within) is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from sealane.errors import InvalidSchema
from sealane.schemas.json.depth import depth
from sealane.schemas.json.keywords import Pointer, definitions_within, schemas_within
from sealane.schemas.limits import SCHEMA_NESTING_MAX, shortened

PATTERNS_MAX = 100
"""Regular expressions of one schema, in `pattern` and `patternProperties`: each is held in memory."""
EXPANDED_MAX = 10_000
"""Schemas within a schema once every reference is replaced by what it leads to: so often is one value looked at."""
REFERENCES_NESTED_MAX = 200
"""Schemas and references that lead to each other, from the first one to the last."""
MULTIPLE_OF_MIN = 1e-9
"""Of `multipleOf`: a smaller one says nothing of a number with 15 digits, and takes long to compute with."""

DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
DRAFTS = {
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    DRAFT_2020_12: 2020,
}
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_NOT_TAKEN = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary")


class Document:
    """A JSON Schema as it is written, whose references are known to lead somewhere."""

    def __init__(self, text: str) -> None:
        """Raises `InvalidSchema`."""
        self.root = _parsed(text)
        self.draft = _draft(self.root)
        self.has_fractions = False
        """Whether numbers are to be multiples of a fraction."""
        patterns = 0
        for pointer, schema in self._all():
            if isinstance(schema, dict):
                self._check(pointer, schema)
                named = schema.get("patternProperties")
                patterns += ("pattern" in schema) + (len(named) if isinstance(named, dict) else 0)
        if patterns > PATTERNS_MAX:
            raise refused(f"it has {patterns:,} regular expressions, at most {PATTERNS_MAX} are possible")
        _Expansion(self).check()

    @property
    def ignores_beside_reference(self) -> bool:
        """Whether what stands beside a `$ref` means nothing, as it did in older drafts."""
        return self.draft <= 7

    def at(self, reference: str) -> Any:
        """What a `$ref` leads to. Raises `InvalidSchema`."""
        found = self.root
        for step in pointer_of(reference):
            try:
                found = found[int(step)] if isinstance(found, list) else found[step]
            except (KeyError, IndexError, ValueError, TypeError):
                raise refused(f"the reference {reference!r} leads nowhere") from None
        if not isinstance(found, dict | bool):
            raise refused(f"the reference {reference!r} leads to something that is no schema")
        return found

    def _all(self) -> Iterator[tuple[Pointer, Any]]:
        """Every schema of the document, also those that nothing refers to."""
        waiting: list[tuple[Pointer, Any]] = [((), self.root)]
        while waiting:
            pointer, schema = waiting.pop()
            yield pointer, schema
            waiting += [(pointer + way, each) for way, each in schemas_within(schema)]
            waiting += [(pointer + way, each) for way, each in definitions_within(schema)]

    def _check(self, pointer: Pointer, schema: dict[str, Any]) -> None:
        where = written(pointer)
        for keyword in _NOT_TAKEN:
            if keyword in schema:
                raise refused(f"{keyword} at {where} is not taken; refer to places of this document by #/$defs/…")
        if pointer and "$id" in schema and not isinstance(schema["$id"], dict):
            raise refused(f"$id at {where} is not taken; only the whole document may have one")
        reference = schema.get("$ref")
        if isinstance(reference, str):
            self.at(reference)
        multiple = schema.get("multipleOf")
        if isinstance(multiple, float):
            if 0 < multiple < MULTIPLE_OF_MIN:
                raise refused(f"multipleOf at {where} is {multiple:g}, at least {MULTIPLE_OF_MIN:g} is possible")
            self.has_fractions |= not multiple.is_integer()


class _Expansion:
    """Counts what a schema is once its references are followed, up to those that lead back to where they are."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._left = EXPANDED_MAX

    def check(self) -> None:
        self._visit(self._document.root, frozenset({"#"}), 0)

    def _visit(self, schema: Any, followed: frozenset[str], nested: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise refused(f"with its references followed it has more than {EXPANDED_MAX:,} schemas within each other")
        if nested > REFERENCES_NESTED_MAX:
            raise refused(f"its schemas and references lead on for more than {REFERENCES_NESTED_MAX} steps")
        for _, each in schemas_within(schema):
            self._visit(each, followed, nested + 1)
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if isinstance(reference, str) and reference not in followed:
            self._visit(self._document.at(reference), followed | {reference}, nested + 1)


def pointer_of(reference: str) -> Pointer:
    """The steps of a reference to a place in the same document. Raises `InvalidSchema`."""
    if reference != "#" and not reference.startswith("#/"):
        raise refused(
            f"the reference {reference!r} leads out of the document, and nothing is fetched; put what it means into "
            "$defs, and refer to it by #/$defs/…"
        )
    steps = _ESCAPED.sub(_unescaped, reference[1:].encode()).decode(errors="replace").split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode())


def written(pointer: Pointer) -> str:
    """The pointer as a reference has it."""
    return "#" + "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in pointer)


def refused(problem: str) -> InvalidSchema:
    """The error, with as much of the text as people read: what is repeated of the schema may be long."""
    return InvalidSchema("json", shortened(problem))


def _parsed(text: str) -> Any:
    if depth(text.encode()) > SCHEMA_NESTING_MAX:
        raise refused(f"lists and objects are nested more than {SCHEMA_NESTING_MAX} deep")
    try:
        root = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise refused(f"it is no JSON: {error}") from None
    if not isinstance(root, dict | bool):
        raise refused("it is neither an object nor true nor false, as JSON Schemas are")
    return root


def _draft(root: Any) -> int:
    named = root.get("$schema", DRAFT_2020_12) if isinstance(root, dict) else DRAFT_2020_12
    draft = DRAFTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if draft is None:
        raise refused(f"its $schema is not known; there are {', '.join(DRAFTS)}")
    return draft
