"""Payloads that are one Avro value each, written with the schema that the reader gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.message.arrow_compute import pc
from sealane.schemas.avro.columns.readers import parsed
from sealane.schemas.avro.columns.record_columns import RecordColumns
from sealane.spark.values.spark_type import refused


class AvroValues:
    """Reads payloads that are one record each, bare or in the single-object encoding of this very schema.

    A payload is corrupt that ends too early or too late, or says what its type cannot be. A header of another
    schema's, or of a schema registry, is not guessed at: with such a payload there is no telling what its bytes mean.
    """

    def __init__(self, schema: str) -> None:
        """`schema` is Avro's own, as JSON: that of the writer. Raises `InvalidOption`."""
        self._schema = schema
        try:
            self._columns = RecordColumns(parsed(schema))
        except InvalidSchema as error:
            raise refused(error.problem) from None
        self.arrow_type = self._columns.arrow_type

    def __reduce__(self) -> tuple[type[AvroValues], tuple[str]]:
        return AvroValues, (self._schema,)

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """As `sealane.spark.values.Values` says."""
        record, is_sound = self._columns.read(payloads)
        if is_sound.all():
            return record, pa.nulls(len(payloads), payloads.type)
        # Of a corrupt row no field stays behind either: some were read from the payload after it.
        value = record.take(pa.array(np.arange(len(payloads)), mask=~is_sound))
        return value, pc.if_else(pa.array(is_sound), pa.scalar(None, payloads.type), payloads)
