"""Protobuf schemas as they were compiled, and payloads in Protobuf."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2

from sealane.schemas import Definition
from tests.fuzz.mutation import mutate
from tests.fuzz.schemas_and_payloads import checked, given, spoiled
from tests.fuzz.target import Target
from tests.unit.schemas.protobuf_files import enum, field, message

_LINE = message("Line", field("price", 1, "double"), field("note", 2, "string"))
_ORDER = message(
    "M",
    field("id", 1, "int64"),
    field("city", 2, "string"),
    field("sizes", 3, "int32", "repeated"),
    field("lines", 4, "message", "repeated", of=".Line"),
    field("next", 5, "message", of=".M"),
    field("kind", 6, "enum", of=".Kind"),
    reserved=[(9, 10), (20, 26)],
)


def _compiled(*messages: Any, syntax: str = "proto3") -> bytes:
    file = descriptor_pb2.FileDescriptorProto(
        name="schema.proto", syntax=syntax, message_type=messages, enum_type=[enum("Kind", 0, 1)]
    )
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


_OLD = _compiled(message("M", field("id", 1, "fixed32", "required")), syntax="proto2")

TARGET = Target(
    "schema_protobuf",
    (
        given(_compiled(_ORDER, _LINE), _OLD, [b"\x08\x01\x12\x04Oslo", b"\x1a\x02\x01\x02", b"\x2a\x02\x08\x07"]),
        given(_OLD, _compiled(_ORDER, _LINE), [b"\x0d\x01\x00\x00\x00"]),
        given(
            _compiled(_ORDER, _LINE), _compiled(_LINE, _ORDER), [b"", b"\x22\x09\x09" + bytes(8), b"\x30\x01\x48\x01"]
        ),
    ),
    checked(lambda data: Definition("protobuf", "", "M", data)),
    spoiled(mutate),
)
