"""Payloads that are Arrow, by the schema that the registry has of them."""

from __future__ import annotations

import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.schemas.arrow.arrow_schema import ArrowSchema
from sealane.schemas.arrow.columns import RowColumns
from sealane.schemas.formats import Definition
from sealane.spark.values.sound import sound_and_corrupt
from sealane.spark.values.spark_type import refused

ROWS = "rows"
"""The one field of a value: a payload has any number of rows."""


class ArrowValues:
    """Reads payloads that fit the schema, as the broker checks it; what does not is corrupt."""

    def __init__(self, definition: Definition) -> None:
        """Raises `InvalidOption` if the schema has no columns."""
        self._definition = definition
        try:
            self._columns = RowColumns(ArrowSchema(definition.text))
        except InvalidSchema as error:
            raise refused(error.problem) from None
        self.arrow_type = pa.struct([(ROWS, self._columns.arrow_type)])

    def __reduce__(self) -> tuple[type[ArrowValues], tuple[Definition]]:
        return ArrowValues, (self._definition,)

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """As `sealane.spark.values.Values` says."""
        rows, is_sound = self._columns.read(payloads)
        mask = None if is_sound.all() else pa.array(~is_sound)
        values = pa.StructArray.from_arrays([rows], fields=list(self.arrow_type), mask=mask)
        return sound_and_corrupt(payloads, values, is_sound)
