"""Payloads as typed columns: a schema that the reader gives, JSON or Avro, or the registry, and what does not fit it
set aside.

A payload is judged by itself alone: what it becomes, and whether it is corrupt, never depends on the messages beside
it. Nothing here needs Spark; the types are Arrow's, exactly those that Spark takes.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import pyarrow as pa

from sealane.schemas.formats import Definition
from sealane.spark.errors import InvalidOption
from sealane.spark.values.avro_values import AvroValues
from sealane.spark.values.json_values import JsonValues
from sealane.spark.values.spark_type import spark_json_of

__all__ = ["VALUE_FORMATS", "Values", "definition_text", "spark_type_json", "values_of"]

VALUE_FORMATS = ("json", "avro")


class Values(Protocol):
    """What payloads become; it can be pickled, and sent to executors."""

    @property
    def arrow_type(self) -> pa.StructType:
        """The type of the value, with one field for each of the schema; everything in it is nullable."""

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """For a binary array: the values, null where corrupt; and the payloads that are corrupt, null elsewhere."""


def values_of(format: str, schema: str) -> Values:
    """How to read payloads of this format. Raises `InvalidOption` if the schema cannot be.

    A schema for JSON is Spark's DDL or Spark's JSON form of a struct; one for Avro is Avro's own. Those for Protobuf
    and Arrow are what `definition_text` makes of the registry's.
    """
    if format == "json":
        return JsonValues(schema)
    if format == "avro":
        return AvroValues(schema)
    if format == "protobuf":
        from sealane.spark.values.protobuf_values import ProtobufValues

        return ProtobufValues(msgspec.json.decode(schema, type=Definition))
    if format == "arrow":
        from sealane.spark.values.arrow_values import ArrowValues

        return ArrowValues(msgspec.json.decode(schema, type=Definition))
    raise InvalidOption("valueFormat", f"{format!r} is not known; it can be {' or '.join(VALUE_FORMATS)}")


def definition_text(definition: Definition) -> str:
    """A schema of the registry as text."""
    return msgspec.json.encode(definition).decode()


def spark_type_json(values: Values) -> str:
    """The type of the value as Spark writes it in JSON, for `StructType.fromJson`."""
    return spark_json_of(values.arrow_type)
