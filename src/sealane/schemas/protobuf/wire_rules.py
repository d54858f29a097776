"""Whether what is written as one Protobuf message can be read as another: field by field, by number."""

from __future__ import annotations

from collections.abc import Iterator

from sealane.schemas.paths import Step, path_of
from sealane.schemas.protobuf.shapes import (
    BOOL,
    BYTES,
    ENUM,
    GROUP,
    INT32,
    INT64,
    MESSAGE,
    SINT32,
    SINT64,
    STRING,
    TYPE_NAMES,
    UINT32,
    UINT64,
    FieldShape,
    MessageShape,
    Shapes,
)
from sealane.schemas.schema import Problem

COMPARISONS_MAX = 10_000
"""Pairs of messages that are compared for one answer, so that no schema keeps a node busy."""
_WIDER: dict[int, frozenset[int]] = {
    INT32: frozenset({INT64}),
    SINT32: frozenset({SINT64}),
    UINT32: frozenset({UINT64, INT64}),
    BOOL: frozenset({INT32, INT64, UINT32, UINT64}),
    ENUM: frozenset({INT32, INT64}),
    STRING: frozenset({BYTES}),
}
"""By what is written: as which other types it can be read without a loss, being written the same."""

Steps = tuple[Step, ...]


class WireRules:
    """Of one reader and one writer, once. With `checks` whatever fits the writer must fit the reader too."""

    def __init__(self, reader: Shapes, writer: Shapes, *, checks: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._checks = checks
        self._compared: set[tuple[str, str]] = set()

    def messages(self, reader: MessageShape, writer: MessageShape, steps: Steps = ()) -> Iterator[Problem]:
        pair = (reader.name, writer.name)
        if pair in self._compared:
            return
        self._compared.add(pair)
        if len(self._compared) > COMPARISONS_MAX:
            yield Problem(path_of(steps), f"more than {COMPARISONS_MAX:,} pairs of messages would have to be compared")
            return
        if reader.syntax != writer.syntax:
            yield Problem(path_of(steps), f"it is {reader.syntax}, and {writer.syntax} is to be read")
            return
        for number, written in sorted(writer.fields.items()):
            read = reader.fields.get(number)
            if read is not None:
                yield from self._fields(read, written, (*steps, written.name))
            elif self._checks and not reader.passes(number):
                text = f"it is gone, and its number is free; write `reserved {number};`, so that what has it still fits"
                yield Problem(path_of((*steps, written.name)), text)
        for number, read in sorted(reader.fields.items()):
            if number not in writer.fields and read.is_required:
                yield Problem(path_of((*steps, read.name)), "it is required, and not in what is to be read")
        yield from self._oneofs(reader, writer, steps)
        if self._checks:
            yield from self._reserved(reader, writer, steps)

    def _fields(self, read: FieldShape, written: FieldShape, steps: Steps) -> Iterator[Problem]:
        if read.is_required and not written.is_required:
            yield Problem(path_of(steps), "it is required, and may be missing in what is to be read")
        if written.is_repeated and not read.is_repeated:
            yield Problem(path_of(steps), "it is read once, and may be written several times")
        if read.type != written.type:
            if read.type not in _WIDER.get(written.type, ()):
                names = TYPE_NAMES.get(read.type, ""), TYPE_NAMES.get(written.type, "")
                yield Problem(path_of(steps), f"it is {names[0]}, and was written as {names[1]}")
        elif read.type in (MESSAGE, GROUP):
            inner = self._reader.message_of(read), self._writer.message_of(written)
            if inner[0].is_map_entry != inner[1].is_map_entry:
                yield Problem(path_of(steps), "a map and a list of messages are not the same")
            else:
                yield from self.messages(*inner, steps)
        elif read.type == ENUM:
            known, possible = self._reader.enums[read.type_name], self._writer.enums[written.type_name]
            missing = sorted(possible.numbers - known.numbers)
            if known.is_closed and missing:
                yield Problem(path_of(steps), f"its enum does not have {', '.join(map(str, missing[:5]))}")

    def _oneofs(self, reader: MessageShape, writer: MessageShape, steps: Steps) -> Iterator[Problem]:
        """Fields that could be there together must not become alternatives: one of them would be lost."""
        members: dict[int, list[FieldShape]] = {}
        for number, read in reader.fields.items():
            if read.oneof is not None and number in writer.fields:
                members.setdefault(read.oneof, []).append(writer.fields[number])
        for together in members.values():
            alternatives = {written.oneof for written in together}
            if len(together) > 1 and (len(alternatives) > 1 or alternatives == {None}):
                names = ", ".join(sorted(written.name for written in together))
                yield Problem(path_of(steps), f"{names} are alternatives (`oneof`), and may be written together")

    def _reserved(self, reader: MessageShape, writer: MessageShape, steps: Steps) -> Iterator[Problem]:
        """What has a number that was passed over must still fit: it may not be put to use, nor be given up."""
        for number, read in sorted(reader.fields.items()):
            if number not in writer.fields and writer.passes(number):
                yield Problem(path_of((*steps, read.name)), f"its number {number} was reserved: take another one")
        for start, stop in writer.passed:
            at = start
            for begin, end in reader.passed:
                if begin <= at < end:
                    at = end
            if at < stop:
                yield Problem(path_of(steps), f"the numbers from {at} to {stop - 1} are no longer reserved")
