"""Payloads that are one record each, all of them read at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sealane.schemas.avro.canonical import fingerprint
from sealane.schemas.avro.columns.cursor import Bools, Cursor
from sealane.schemas.avro.columns.readers import record_reader

MARK = bytes((0xC3, 0x01))
HEADER_BYTES = 10
"""Of the single-object encoding: the mark, and the fingerprint of the schema, least significant byte first."""


class RecordColumns:
    """Reads payloads of one record each, bare or in the single-object encoding of this very schema."""

    def __init__(self, schema: Any) -> None:
        """`schema` is Avro's own, parsed. Raises `InvalidSchema` if it has no columns."""
        self._reader = record_reader(schema)
        self._fingerprint = np.uint64(fingerprint(schema))
        self.arrow_type = self._reader.arrow_type

    def read(self, payloads: pa.Array) -> tuple[pa.Array, Bools]:
        """The records, and which of them are sound: of the others the fields are whatever there can be."""
        cursor = Cursor.over(payloads)
        self._skip_headers(cursor)
        record = self._reader.read(cursor)
        is_sound = cursor.ok & (cursor.at == cursor.end)
        if payloads.null_count:
            is_sound &= payloads.is_valid().to_numpy(zero_copy_only=False)
        return record, is_sound

    def _skip_headers(self, cursor: Cursor) -> None:
        """A bare value may begin with the mark as well, but hardly with the fingerprint behind it."""
        data = cursor.shared.bytes
        marked = np.flatnonzero((data[cursor.at] == MARK[0]) & (data[cursor.at + 1] == MARK[1]))
        if marked.size:
            starts = cursor.at[marked]
            is_ours = cursor.shared.at(starts + len(MARK), "<u8") == self._fingerprint
            is_whole = cursor.end[marked] - starts >= HEADER_BYTES
            cursor.at[marked] += np.where(is_ours & is_whole, HEADER_BYTES, 0)
