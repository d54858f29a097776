"""The formats of schemas, and a schema as it is kept and sent."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from sealane.errors import InvalidSchema
from sealane.schemas.limits import check_size
from sealane.schemas.schema import Schema

Format = Literal["json", "avro", "protobuf", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema as text, with what it takes to read it again."""

    format: Format
    text: str
    """As its author wrote it; of Arrow, the bytes of its schema message in base64."""
    message: str | None = None
    """Of Protobuf: the full name of the message that payloads are."""
    compiled: bytes | None = None
    """Of Protobuf: the text as a FileDescriptorSet, with all that it imports."""


def definition_shown(told: Mapping[str, Any]) -> Definition:
    """The schema that the node's `schema.show` has told of."""
    compiled = told["compiled"]
    data = None if compiled is None else base64.b64decode(compiled)
    return Definition(told["format"], told["schema"], told["message"], data)


def open_schema(definition: Definition) -> Schema:
    """The schema that is defined. Raises `InvalidSchema`, and `MissingExtra` if what reads it is not installed."""
    check_size(definition.format, definition.text)
    match definition.format:
        case "json":
            from sealane.schemas.json.json_schema import JsonSchema

            return JsonSchema(definition.text)
        case "avro":
            from sealane.schemas.avro.avro_schema import AvroSchema

            return AvroSchema(definition.text)
        case "protobuf":
            from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema

            if definition.compiled is None:
                raise InvalidSchema("protobuf", "its text was not compiled")
            return ProtobufSchema(definition.compiled, definition.message)
        case "arrow":
            from sealane.schemas.arrow.arrow_schema import ArrowSchema

            return ArrowSchema(definition.text)
