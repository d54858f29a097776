"""Protobuf descriptors without a compiler: a file of one message, and whatever else it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2

from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema

TYPES = {
    name.removeprefix("TYPE_").lower(): number for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}
LABELS: dict[str, Any] = {"optional": 1, "required": 2, "repeated": 3}


def field(name: str, number: int, type: str, label: str = "optional", **rest: Any) -> Any:
    """`rest` may be `of` (the name of a message or an enum) and `oneof` (its place)."""
    made = descriptor_pb2.FieldDescriptorProto(name=name, number=number, type=TYPES[type], label=LABELS[label])
    if "of" in rest:
        made.type_name = rest["of"]
    if rest.get("oneof") is not None:
        made.oneof_index = rest["oneof"]
    return made


def message(name: str, *fields: Any, reserved: Iterable[tuple[int, int]] = (), oneofs: int = 0) -> Any:
    made = descriptor_pb2.DescriptorProto(name=name, field=fields)
    for start, stop in reserved:
        made.reserved_range.add(start=start, end=stop)
    for place in range(oneofs):
        made.oneof_decl.add(name=f"one{place}")
    return made


def schema_of(
    *messages: Any, syntax: str = "proto3", enums: Iterable[Any] = (), of: str | None = "M"
) -> ProtobufSchema:
    file = descriptor_pb2.FileDescriptorProto(
        name="schema.proto", syntax=syntax, message_type=messages, enum_type=enums
    )
    return ProtobufSchema(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), of)


def enum(name: str, *numbers: int) -> Any:
    made = descriptor_pb2.EnumDescriptorProto(name=name)
    for number in numbers:
        made.value.add(name=f"{name}_{number}".replace("-", "m"), number=number)
    return made
