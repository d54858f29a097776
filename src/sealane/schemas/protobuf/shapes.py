"""Messages as a compiled .proto file describes them: their fields by number, and the numbers that others may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sealane.errors import InvalidSchema
from sealane.schemas.limits import shortened

# As descriptor.proto numbers them.
GROUP, MESSAGE, ENUM, STRING, BYTES = 10, 11, 14, 9, 12
INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL = 5, 3, 13, 4, 17, 18, 8
_IN_ORDER = (
    "double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum sfixed32 sfixed64"
)
TYPE_NAMES = dict(enumerate(f"{_IN_ORDER} sint32 sint64".split(), 1))
_REQUIRED, _REPEATED = 2, 3
SYNTAXES = ("proto2", "proto3")


@dataclass(frozen=True, slots=True)
class EnumShape:
    numbers: frozenset[int]
    is_closed: bool
    """Whether a number that it does not have is as good as none: so it is in proto2."""


@dataclass(frozen=True, slots=True)
class FieldShape:
    name: str
    number: int
    type: int
    is_required: bool
    is_repeated: bool
    type_name: str
    """Of a message or an enum, with a dot before it."""
    oneof: int | None
    """Which `oneof` of its message it is in."""


@dataclass(slots=True, eq=False)
class MessageShape:
    name: str
    syntax: str
    is_map_entry: bool
    fields: dict[int, FieldShape] = field(default_factory=dict)
    passed: tuple[tuple[int, int], ...] = ()
    """Ranges of numbers that are reserved, or for extensions, each without its end: what has them is passed over."""

    def passes(self, number: int) -> bool:
        return any(start <= number < stop for start, stop in self.passed)


@dataclass(slots=True)
class Shapes:
    """All messages and enums of a compiled file, and of what it imports, by name."""

    messages: dict[str, MessageShape] = field(default_factory=dict)
    enums: dict[str, EnumShape] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    """The messages of the file itself that are in no other one."""

    def message_of(self, shape: FieldShape) -> MessageShape:
        return self.messages[shape.type_name]

    def find(self, name: str | None) -> MessageShape:
        """The message that payloads are: by its name, with or without its package, or the only one there is.

        Raises `InvalidSchema`.
        """
        known = ", ".join(each.removeprefix(".") for each in self.own)
        if name is None:
            if len(self.own) != 1:
                raise refused(f"it has {len(self.own)} messages; say which of them payloads are: {known or 'none'}")
            return self.messages[self.own[0]]
        wanted = "." + name.removeprefix(".")
        found = [full for full in self.messages if full == wanted] or [
            full for full in self.messages if full.endswith(wanted) and any(full.startswith(own) for own in self.own)
        ]
        if len(found) != 1:
            raise refused(f"it has no message {name!r}, or several; there are {known or 'none'}")
        return self.messages[found[0]]


def shapes_of(files: Iterable[Any]) -> Shapes:
    """Of the files of a FileDescriptorSet, what is imported before what imports it. Raises `InvalidSchema`."""
    shapes = Shapes()
    for file in files:
        syntax = file.syntax or "proto2"
        if syntax not in SYNTAXES:
            raise refused(f"it is written in {syntax!r}; there are {' and '.join(SYNTAXES)}")
        around = f".{file.package}" if file.package else ""
        shapes.own = [f"{around}.{message.name}" for message in file.message_type]
        _add_enums(shapes, file.enum_type, around, syntax)
        for message in file.message_type:
            _add_message(shapes, message, around, syntax)
    _check_types(shapes)
    return shapes


def refused(problem: str) -> InvalidSchema:
    return InvalidSchema("protobuf", shortened(problem))


def _check_types(shapes: Shapes) -> None:
    """What is compiled names only what there is; what was damaged since may not."""
    by_type: dict[int, Mapping[str, object]] = {MESSAGE: shapes.messages, GROUP: shapes.messages, ENUM: shapes.enums}
    for message in shapes.messages.values():
        for each in message.fields.values():
            if each.type in by_type and each.type_name not in by_type[each.type]:
                raise refused(f"{message.name}.{each.name} is of a type that it does not have")


def _add_enums(shapes: Shapes, enums: Iterable[Any], around: str, syntax: str) -> None:
    for each in enums:
        numbers = frozenset(value.number for value in each.value)
        shapes.enums[f"{around}.{each.name}"] = EnumShape(numbers, syntax == "proto2")


def _add_message(shapes: Shapes, message: Any, around: str, syntax: str) -> None:
    name = f"{around}.{message.name}"
    shape = MessageShape(name.removeprefix("."), syntax, message.options.map_entry)
    for each in message.field:
        # A field of proto3 that may be absent is in a `oneof` of its own.
        oneof = each.oneof_index if each.HasField("oneof_index") and not each.proto3_optional else None
        is_required, is_repeated = each.label == _REQUIRED, each.label == _REPEATED
        shape.fields[each.number] = FieldShape(
            each.name, each.number, each.type, is_required, is_repeated, each.type_name, oneof
        )
    ranges = [*message.reserved_range, *message.extension_range]
    shape.passed = tuple(sorted((each.start, each.end) for each in ranges))
    shapes.messages[name] = shape
    _add_enums(shapes, message.enum_type, name, syntax)
    for nested in message.nested_type:
        _add_message(shapes, nested, name, syntax)
