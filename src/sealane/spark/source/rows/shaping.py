"""From stored batches to the rows of a DataFrame: the columns of messages, their typed values, and what did not open.

Beside the columns that every message has there are, where they were asked for:

- `value` and `_corrupt`: the payload as a struct, or, where it is none, as it is;
- `_unopened`: why a payload is ciphertext still, although there were decryption keys. Null where it is in the clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sealane.engine import Stored
from sealane.message.arrow_compute import pc
from sealane.spark.source.rows.columns import BINARY, MESSAGE_SCHEMA, TEXT, Origin, constant, message_columns
from sealane.spark.source.rows.opening import Opening

if TYPE_CHECKING:
    from sealane.spark.values import Values

ROWS_AT_ONCE = 10_000
BYTES_AT_ONCE = 1 << 20
"""Batches are put together as long as they stay below both: each costs Spark a fraction of a millisecond, and single
publishes make batches of one. What is larger by itself is worth no copy."""

_PAYLOAD = MESSAGE_SCHEMA.get_field_index("payload")


def row_schema(values: Values | None = None, *, opens: bool = False) -> pa.Schema:
    """The columns of a read with these typed values, in their order; `opens`: with decryption keys."""
    fields = list(MESSAGE_SCHEMA)
    if values is not None:
        fields += [pa.field("value", values.arrow_type), pa.field("_corrupt", BINARY)]
    if opens:
        fields.append(pa.field("_unopened", TEXT))
    return pa.schema(fields)


class Shaping:
    """Makes what Spark takes of what a partition has."""

    def __init__(
        self,
        topic: str,
        partition: int,
        opening: Opening | None = None,
        values: Values | None = None,
        schema_id: int | None = None,
    ) -> None:
        """`topic` is its full name; `schema_id` that of the schema that payloads are read with, where it matters."""
        self._origin = Origin(topic, partition)
        self._opening = opening
        self._values = values
        self._schema_id = schema_id
        self._schema = row_schema(values, opens=opening is not None)

    def shape(self, stored: Iterable[Stored]) -> Iterator[pa.RecordBatch]:
        """The same messages in the same order: small batches together, large ones as they are."""
        return map(self._record_batch, _gathered(stored))

    def _record_batch(self, stored: Sequence[Stored]) -> pa.RecordBatch:
        problems: Mapping[int, str] = {}
        if self._opening is not None:
            stored, problems = self._opening.open(stored)
        columns = message_columns(stored, self._origin)
        payloads = columns[_PAYLOAD]
        if self._values is not None:
            others = () if self._schema_id is None else _of_other_schemas(stored, self._schema_id)
            columns += _typed(self._values, payloads, [*problems, *others])
        if self._opening is not None:
            columns.append(_reasons(problems, len(payloads)))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _gathered(stored: Iterable[Stored]) -> Iterator[list[Stored]]:
    some: list[Stored] = []
    rows = size = 0
    for one in stored:
        rows += len(one.batch)
        size += one.batch.nbytes
        if some and (rows > ROWS_AT_ONCE or size > BYTES_AT_ONCE):
            yield some
            some, rows, size = [], len(one.batch), one.batch.nbytes
        some.append(one)
    if some:
        yield some


def _of_other_schemas(stored: Iterable[Stored], schema_id: int) -> Iterator[int]:
    """The rows that were written with another schema than this."""
    row = 0
    for one in stored:
        if one.batch.meta.schema_id not in (None, schema_id):
            yield from range(row, row + len(one.batch))
        row += len(one.batch)


def _typed(values: Values, payloads: pa.Array, unreadable: Sequence[int]) -> list[pa.Array]:
    value, corrupt = values.read(payloads)
    if unreadable:
        # Ciphertext, and what another schema wrote, may look like a value by chance: it is none.
        clear = np.ones(len(payloads), dtype=bool)
        clear[unreadable] = False
        value = value.take(pa.array(np.arange(len(payloads)), mask=~clear))
        corrupt = pc.if_else(pa.array(clear), corrupt, payloads)
    return [value, corrupt]


def _reasons(problems: Mapping[int, str], rows: int) -> pa.Array:
    if not problems:
        return constant(None, TEXT).column(rows)
    return pa.array([problems.get(row) for row in range(rows)], TEXT)
