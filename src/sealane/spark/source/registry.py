"""Typed columns by the schema that a topic has registered: fetched on the driver, before any job starts."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.client.sync.lane import SyncLane
from sealane.errors import SchemaNotFound
from sealane.schemas.formats import definition_shown
from sealane.schemas.json.document import Document
from sealane.spark.errors import InvalidOption
from sealane.spark.options.access import with_retries
from sealane.spark.options.options import ReadOptions

_OPTION = "valueSchemaFrom"


def with_registered(options: ReadOptions) -> ReadOptions:
    """The options with the latest schema of their topic, where they ask for it. Raises `InvalidOption`."""
    if not options.from_registry:
        return options
    topic = options.topics[0]

    def show(lane: SyncLane) -> Any:
        return lane.administer("schema.show", topic=topic)

    try:
        found = with_retries(options.access, f"looking up the schema of topic {topic!r}", show)
    except SchemaNotFound:
        raise InvalidOption(
            _OPTION, f"topic {topic!r} has no schema; register one, or give valueFormat and valueSchema"
        ) from None
    match found["format"]:
        case "json":
            return _checked(msgspec.structs.replace(options, value_format="json", value_schema=_spark(found["schema"])))
        case "avro":
            # Bare Avro does not tell what it was written with: what another version wrote must not be read with this.
            return _checked(
                msgspec.structs.replace(
                    options, value_format="avro", value_schema=found["schema"], schema_id=found["id"]
                )
            )
        case format:
            from sealane.spark.values import definition_text

            # A record batch without its schema does not tell either; a Protobuf message has numbers for its fields.
            by_id = found["id"] if format == "arrow" else None
            text = definition_text(definition_shown(found))
            return _checked(msgspec.structs.replace(options, value_format=format, value_schema=text, schema_id=by_id))


def _spark(text: str) -> str:
    """A JSON Schema as Spark's JSON form of a struct."""
    from sealane.spark.values.json_schema_types import struct_of_json_schema
    from sealane.spark.values.spark_type import spark_json_of

    return spark_json_of(struct_of_json_schema(Document(text)))


def _checked(options: ReadOptions) -> ReadOptions:
    try:
        options.values()
    except InvalidOption as error:
        raise InvalidOption(_OPTION, f"the topic's schema has no columns: {error.problem}") from None
    return options
