"""Whether values of one Avro schema can be read with another: the verdict is the library's, the places are found here.

The library says what is wrong, and where, in two sets that do not tell which belongs to which; so it is asked of the
fields one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from sealane.schemas.extras import avro_schemas
from sealane.schemas.paths import ANY, Step, path_of
from sealane.schemas.schema import Problem

_NESTED = 32
"""Fields within fields that are looked into for the place of a problem."""

_PLACES = 100
"""As many are looked for: more than anybody is told of."""


def unresolved(reader: Any, writer: Any) -> list[Problem]:
    """Why the reader's schema cannot resolve all that the writer's allows, both as the library has them."""
    if _resolves(reader, writer):
        return []
    return list(islice(_places(reader, writer, ()), _PLACES)) or [Problem("$", "what is written cannot be resolved")]


def _resolves(reader: Any, writer: Any) -> bool:
    _, compatibility = avro_schemas()
    found = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)
    return bool(found.compatibility is not compatibility.SchemaCompatibilityType.incompatible)


def _places(reader: Any, writer: Any, steps: tuple[Step, ...]) -> Iterator[Problem]:
    _, compatibility = avro_schemas()
    if len(steps) < _NESTED and reader.type == writer.type:
        if reader.type == "record" and compatibility.schema_name_equals(reader, writer):
            yield from _fields(reader, writer, steps)
            return
        if reader.type == "array":
            yield from _within(reader.items, writer.items, (*steps, ANY))
            return
        if reader.type == "map":
            yield from _within(reader.values, writer.values, (*steps, ANY))
            return
    found = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)
    yield Problem(path_of(steps), ", ".join(sorted(found.messages)) or "what is written cannot be resolved")


def _fields(reader: Any, writer: Any, steps: tuple[Step, ...]) -> Iterator[Problem]:
    _, compatibility = avro_schemas()
    for each in reader.fields:
        written = compatibility.lookup_writer_field(writer_schema=writer, reader_field=each)
        place = (*steps, each.name)
        if written is not None:
            yield from _within(each.type, written.type, place)
        elif not each.has_default:
            yield Problem(path_of(place), "it has no default, and is not in what is written")


def _within(reader: Any, writer: Any, steps: tuple[Step, ...]) -> Iterator[Problem]:
    if not _resolves(reader, writer):
        yield from _places(reader, writer, steps)
