"""Batches from Arrow data that a caller built: missing columns filled, compatible types cast, split to the limits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidBatch, LimitExceeded
from sealane.message.batch import DEFAULT_META, Batch, BatchMeta, offsets_of
from sealane.message.columns import constant_times, default_priorities, null_column
from sealane.message.ids import Stamp, generate_ids, parse_id
from sealane.message.limits import Limits
from sealane.message.schema import CREATED, ENVELOPE, HEADERS, ID, KEY, PAYLOAD, PRIORITY, PRIORITY_DEFAULT, SCHEMA
from sealane.message.validation import check_messages, check_structure, first_line

_GIVEN = BatchMeta(given_ids=True)
_ROW_BYTES = 16 + 4 + 4 + 4 + 1 + 8 + 8 + 8 + 4
"""What a message occupies at most beside its bytes: fixed columns and offsets."""
_HEADER_ENTRY_BYTES = 8


def from_arrow(data: pa.RecordBatch | pa.Table, stamp: Stamp, *, limits: Limits) -> list[Batch]:
    """Batches with the messages of `data`, in its order, each within the limits.

    Only `payload` has to be there. Columns are found by name; an `id` column means that the caller gives the ids. Null
    priorities become the default, null `created` times the stamp's. A column that no message has is refused.
    """
    if not isinstance(data, (pa.RecordBatch, pa.Table)):
        raise InvalidBatch(f"a {type(data).__name__} is not a pa.RecordBatch or pa.Table")
    _check_columns(data.schema)
    try:
        data.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidBatch(first_line(error)) from None
    if not data.num_rows:
        raise InvalidBatch("it holds no messages")
    generated = None if "id" in data.schema.names else generate_ids(data.num_rows, stamp)
    pieces = [data] if isinstance(data, pa.RecordBatch) else data.to_batches()
    batches: list[Batch] = []
    start = 0
    for piece in pieces:
        if not piece.num_rows:
            continue
        ids = None if generated is None else generated.slice(start, piece.num_rows)
        records = _conform(piece, ids, stamp)
        start += piece.num_rows
        check_structure(records)
        meta = DEFAULT_META if generated is not None else _GIVEN
        for first, stop in _spans(records, limits):
            batch = Batch(records.slice(first, stop - first), meta)
            check_messages(batch, limits)
            batches.append(batch)
    return batches


def _check_columns(schema: pa.Schema) -> None:
    seen = set()
    for name in schema.names:
        if name not in SCHEMA.names:
            raise InvalidBatch(f"no message has it; there are {', '.join(SCHEMA.names)}", column=name)
        if name in seen:
            raise InvalidBatch("it is there twice", column=name)
        seen.add(name)
    if "payload" not in seen:
        raise InvalidBatch("it is missing, and every message has one", column="payload")


def _conform(piece: pa.RecordBatch, ids: pa.Array | None, stamp: Stamp) -> pa.RecordBatch:
    rows = piece.num_rows
    columns = []
    for place, field in enumerate(SCHEMA):
        if field.name in piece.schema.names:
            column = _cast(piece.column(field.name), field)
            if place == PRIORITY and column.null_count:
                column = column.fill_null(PRIORITY_DEFAULT)
            elif place == CREATED and column.null_count:
                column = column.fill_null(pa.scalar(stamp.created_us, field.type))
            columns.append(column)
        elif place == ID:
            columns.append(ids)
        elif place == PRIORITY:
            columns.append(default_priorities(rows))
        elif place == CREATED:
            columns.append(constant_times(stamp.created_us, rows))
        else:
            columns.append(null_column(place, rows))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == field.type:
        return column
    kind = column.type
    if field.name == "id" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return pa.array([None if text is None else parse_id(text) for text in column.to_pylist()], field.type)
    try:
        return column.cast(field.type)
    except (pa.ArrowException, ValueError, TypeError) as error:
        problem = f"{kind} does not become {field.type}: {first_line(error)}"
        raise InvalidBatch(problem, column=field.name) from None


def _spans(records: pa.RecordBatch, limits: Limits) -> list[tuple[int, int]]:
    """Runs of rows that each fit into a batch."""
    ends = np.cumsum(row_bytes(records), dtype=np.int64)
    rows = records.num_rows
    spans = []
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + limits.batch_bytes_max, side="right"))
        if fitting == start:
            raise LimitExceeded(
                "batch", limits.batch_bytes_max, int(ends[start]) - before, setting="limits.batch_bytes_max"
            )
        stop = min(fitting, start + limits.batch_messages_max)
        spans.append((start, stop))
        start = stop
    return spans


def row_bytes(records: pa.RecordBatch) -> np.ndarray:
    """What each message occupies at most."""
    sizes = np.full(records.num_rows, _ROW_BYTES, dtype=np.int64)
    for place in (KEY, PAYLOAD, ENVELOPE):
        sizes += np.diff(offsets_of(records.column(place)))
    headers = records.column(HEADERS)
    if headers.null_count < len(headers):
        offsets = offsets_of(headers)
        for part in (headers.keys, headers.items):
            entry_ends = offsets_of(part)
            sizes += entry_ends[offsets[1:]] - entry_ends[offsets[:-1]]
        sizes += np.diff(offsets) * _HEADER_ENTRY_BYTES
    return sizes
