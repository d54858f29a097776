"""Two JSON Schemas side by side: what each says, its references followed, within so many steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from sealane.errors import InvalidSchema
from sealane.schemas.json.document import DRAFT_2020_12, Document
from sealane.schemas.json.keywords import CONSTRAINTS
from sealane.schemas.json.simple_rules import Said, same_value
from sealane.schemas.paths import Step
from sealane.schemas.schema import Problem

COMPARISONS_MAX = 5_000
"""Pairs of schemas that are compared for one answer, so that no schema keeps a node busy."""

Steps = tuple[Step, ...]
Problems = list[Problem]

_OWN = CONSTRAINTS - {"$ref", "allOf"}
"""What is left of a schema when its references and `allOf` are followed."""


class TooMany(Exception):
    """The steps are used up."""


class Comparison(ABC):
    """Of the schema that reads with the one that was written by, once."""

    def __init__(self, reader: Document, written: Document) -> None:
        self._reader = reader
        self._written = written
        self._left = COMPARISONS_MAX
        self._made: dict[tuple[int, Any], dict[str, Any]] = {}
        """Schemas that no document has, by what they were made of: the same again is the same object, and no other one
        gets its place in memory."""
        root = reader.root
        self._draft: str = root.get("$schema", DRAFT_2020_12) if isinstance(root, dict) else DRAFT_2020_12

    @abstractmethod
    def _compare(self, reader: Any, said: Said | None, steps: Steps) -> Problems:
        """Why what is said of the values at a place does not imply the schema that reads them."""

    def _spend(self) -> None:
        """One step. Raises `TooMany`."""
        self._left -= 1
        if self._left < 0:
            raise TooMany

    def _together(self, schemas: Iterable[Any]) -> list[dict[str, Any]] | None:
        """What these say together, references and `allOf` followed; None if nothing can fit them."""
        found: list[dict[str, Any]] = []
        waiting, followed = list(schemas), set()
        while waiting:
            schema = waiting.pop(0)
            if schema is False:
                return None
            if schema is True or id(schema) in followed:
                continue
            followed.add(id(schema))
            if "$ref" in schema:
                waiting.append(self._written.at(schema["$ref"]))
                if self._written.ignores_beside_reference:
                    continue
            if _OWN & schema.keys():
                found.append(schema)
            waiting += schema.get("allOf", ())
        return found

    def _same(self, reader: Any, written: Any, followed: frozenset[str] = frozenset()) -> bool:
        """Whether two schemas are written the same, and so is all that they refer to."""
        if reader is None or written is None:
            return reader is written
        if not same_value(reader, written):
            return False
        for reference in _references(reader):
            if reference in followed:
                continue
            self._spend()
            followed |= {reference}
            try:
                targets = self._reader.at(reference), self._written.at(reference)
            except InvalidSchema:
                return False  # It is among values, and no reference.
            if not self._same(*targets, followed):
                return False
        return True


def _references(schema: Any) -> Iterable[str]:
    """All references that are written in a schema, or in several."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            if isinstance(each.get("$ref"), str):
                yield each["$ref"]
            waiting += each.values()
