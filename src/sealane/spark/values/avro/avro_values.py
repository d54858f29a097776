"""Payloads that are one Avro value each, written with the schema that the reader gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.spark.values.avro.canonical import fingerprint
from sealane.spark.values.avro.cursor import Cursor
from sealane.spark.values.avro.schema import parsed, record_reader

_MARK = (0xC3, 0x01)
_HEADER_BYTES = 10
"""Of the single-object encoding: the mark, and the fingerprint of the schema, least significant byte first."""


class AvroValues:
    """Reads payloads that are one record each, bare or in the single-object encoding of this very schema.

    A payload is corrupt that ends too early or too late, or says what its type cannot be. A header of another
    schema's, or of a schema registry, is not guessed at: with such a payload there is no telling what its bytes mean.
    """

    def __init__(self, schema: str) -> None:
        """`schema` is Avro's own, as JSON: that of the writer. Raises `InvalidOption`."""
        self._schema = schema
        written = parsed(schema)
        self._reader = record_reader(written)
        self._fingerprint = np.uint64(fingerprint(written))
        self.arrow_type = self._reader.arrow_type

    def __reduce__(self) -> tuple[type[AvroValues], tuple[str]]:
        return AvroValues, (self._schema,)

    def read(self, payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        """As `sealane.spark.values.Values` says."""
        cursor = Cursor.over(payloads)
        self._skip_headers(cursor)
        record = self._reader.read(cursor)
        is_sound = cursor.ok & (cursor.at == cursor.end)
        if payloads.null_count:
            is_sound &= payloads.is_valid().to_numpy(zero_copy_only=False)
        if is_sound.all():
            return record, pa.nulls(len(payloads), payloads.type)
        # Of a corrupt row no field stays behind either: some were read from the payload after it.
        value = record.take(pa.array(np.arange(len(payloads)), mask=~is_sound))
        return value, pc.if_else(pa.array(is_sound), pa.scalar(None, payloads.type), payloads)

    def _skip_headers(self, cursor: Cursor) -> None:
        """A bare value may begin with the mark as well, but hardly with the fingerprint behind it."""
        data = cursor.shared.bytes
        marked = np.flatnonzero((data[cursor.at] == _MARK[0]) & (data[cursor.at + 1] == _MARK[1]))
        if marked.size:
            starts = cursor.at[marked]
            is_ours = cursor.shared.at(starts + len(_MARK), "<u8") == self._fingerprint
            is_whole = cursor.end[marked] - starts >= _HEADER_BYTES
            cursor.at[marked] += np.where(is_ours & is_whole, _HEADER_BYTES, 0)
