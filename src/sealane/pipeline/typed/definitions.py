"""The fields that a schema names, by the machinery of the Spark source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.pipeline.typed.columns import widened
from sealane.pipeline.typed.numbers_in_columns import hashed_type
from sealane.schemas.arrow.arrow_schema import ArrowSchema
from sealane.schemas.arrow.columns import RowColumns
from sealane.schemas.formats import Definition
from sealane.schemas.json.document import Document
from sealane.spark.errors import InvalidOption
from sealane.spark.values.avro_values import AvroValues
from sealane.spark.values.json_schema_types import struct_of_json_schema
from sealane.spark.values.json_values import JsonValues
from sealane.spark.values.spark_type import spark_json_of, type_of_spark_json

if TYPE_CHECKING:
    from sealane.schemas.protobuf.columns import MessageColumns


def fields_of(definition: Definition) -> pa.StructType | None:
    """The fields by their names in the schema, with the types that columns have; None if it has no columns at all.

    What has no column is left out, as a field of a JSON Schema that may be of several types: the body has it.
    """
    try:
        found = _fields(definition)
        wide = None if found is None else widened(hashed_type(found))
        if wide is not None and definition.format == "json":
            JsonValues(spark_json_of(wide))  # Some names cannot be read from JSON.
        if wide is not None:
            type_of_spark_json(spark_json_of(wide))  # As the table's own file has it.
    except (InvalidOption, InvalidSchema):
        return None
    return wide


def _fields(definition: Definition) -> pa.StructType | None:
    match definition.format:
        case "json":
            return _json_fields(definition.text)
        case "avro":
            return AvroValues(definition.text).arrow_type
        case "protobuf":
            return message_columns(definition).arrow_type
        case "arrow":
            return row_columns(definition).arrow_type.value_type


def message_columns(definition: Definition) -> MessageColumns:
    """What reads payloads of Protobuf. Raises `InvalidSchema`, and `MissingExtra`."""
    from sealane.schemas.protobuf.columns import MessageColumns
    from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema

    return MessageColumns(ProtobufSchema(definition.compiled or b"", definition.message), leaves_out=True)


def row_columns(definition: Definition) -> RowColumns:
    """What reads payloads of Arrow. Raises `InvalidSchema`."""
    return RowColumns(ArrowSchema(definition.text), leaves_out=True)


def _json_fields(text: str) -> pa.StructType | None:
    document = Document(text)
    try:
        return struct_of_json_schema(document)
    except InvalidOption:
        named = document.root.get("properties") if isinstance(document.root, dict) else None
        if not isinstance(named, dict):
            raise
    alone = (_field_alone(document, name) for name in named)
    fields = [field for field in alone if field is not None]
    return pa.struct(fields) if fields else None


def _field_alone(document: Document, name: str) -> pa.Field | None:
    """The field of a schema that has no other."""
    root = document.root | {"properties": {name: document.root["properties"][name]}}
    try:
        return struct_of_json_schema(Document(msgspec.json.encode(root).decode())).field(0)
    except (InvalidOption, InvalidSchema):
        return None
