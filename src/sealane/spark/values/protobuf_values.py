"""Payloads that are one Protobuf message each, by the descriptors that the registry has of them."""

from __future__ import annotations

import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.schemas.formats import Definition
from sealane.schemas.protobuf.columns import MessageColumns
from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema
from sealane.spark.values.sound import sound_and_corrupt
from sealane.spark.values.spark_type import refused


class ProtobufValues:
    """Reads payloads that fit the schema, as the broker checks it; what does not is corrupt."""

    def __init__(self, definition: Definition) -> None:
        """Raises `InvalidOption` if the schema has no columns, and `MissingExtra`."""
        self._definition = definition
        try:
            self._columns = MessageColumns(ProtobufSchema(definition.compiled or b"", definition.message))
        except InvalidSchema as error:
            raise refused(error.problem) from None
        self.arrow_type = self._columns.arrow_type

    def __reduce__(self) -> tuple[type[ProtobufValues], tuple[Definition]]:
        return ProtobufValues, (self._definition,)

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """As `sealane.spark.values.Values` says."""
        return sound_and_corrupt(payloads, *self._columns.read(payloads))
