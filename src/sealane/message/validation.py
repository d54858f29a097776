"""What must hold for a batch that someone else built, checked at the speed of Arrow.

The order matters: `check_structure` proves that every offset stays inside its buffer, and nothing reads through an
offset before it has passed.
"""

from __future__ import annotations

import re
import struct

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message.batch import Batch, offsets_of
from sealane.message.columns import kept_places
from sealane.message.limits import Limits
from sealane.message.schema import (
    CREATED,
    DELIVER_AT,
    EXPIRES,
    HEADERS,
    ID,
    KEY,
    PAYLOAD,
    PRIORITY,
    PRIORITY_MAX,
    PRIORITY_MIN,
    SCHEMA,
    TIME_US_MAX,
)

_UINT64 = struct.Struct("<Q")
_NUMBERING = re.compile(r"^In column \d+: (Invalid: )?")
_REQUIRED = (ID, PAYLOAD, PRIORITY, CREATED)


def check_structure(records: pa.RecordBatch) -> None:
    """Raise `InvalidBatch`, naming the column, unless lengths, offsets, null counts and UTF-8 are sound throughout."""
    try:
        records.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidBatch(first_line(error), column=_broken_column(records)) from None


def check_messages(batch: Batch, limits: Limits) -> None:
    """Raise unless every message of a structurally sound batch obeys the contract and the limits."""
    absent = batch.absent
    rows = len(batch)
    if not rows:
        raise InvalidBatch("it holds no messages")
    if rows > limits.batch_messages_max:
        raise LimitExceeded(
            "batch", limits.batch_messages_max, rows, unit="messages", setting="limits.batch_messages_max"
        )
    columns = dict(zip(kept_places(absent), batch.kept.columns, strict=True))
    for place in _REQUIRED:
        if place in columns and (nulls := columns[place].null_count):
            raise InvalidBatch(f"{nulls:,} of {rows:,} values are null, none may be", column=SCHEMA.names[place])
    if batch.nbytes > limits.batch_bytes_max:
        raise LimitExceeded("batch", limits.batch_bytes_max, batch.nbytes, setting="limits.batch_bytes_max")
    check_lengths(columns[PAYLOAD], "payload", limits.payload_bytes_max)
    if KEY in columns:
        check_lengths(columns[KEY], "key", limits.key_bytes_max)
    if HEADERS in columns:
        _check_headers(columns[HEADERS], limits)
    if PRIORITY in columns:
        _check_priorities(batch)
    for place in (CREATED, EXPIRES, DELIVER_AT):
        if place in columns:
            _check_times(columns[place], SCHEMA.names[place])


def check_lengths(column: pa.Array, field: str, bytes_max: int) -> None:
    """Raise `LimitExceeded` if a value of a binary column is longer than its limit."""
    # Usually all of the column together is smaller than what one message may have: then no row needs a look.
    if column.total_values_length > bytes_max and (longest := int(np.diff(offsets_of(column)).max())) > bytes_max:
        raise LimitExceeded(field, bytes_max, longest, setting=f"limits.{field}_bytes_max")


def _check_priorities(batch: Batch) -> None:
    lowest, highest = batch.traits.priority_min, batch.traits.priority_max
    if lowest < PRIORITY_MIN or highest > PRIORITY_MAX:
        wrong = lowest if lowest < PRIORITY_MIN else highest
        raise InvalidMessage("priority", f"is {wrong}, it goes from {PRIORITY_MIN} to {PRIORITY_MAX}")


def _check_times(column: pa.Array, field: str) -> None:
    if column.null_count:
        column = column.drop_null()
    if not len(column):
        return
    # Read without a sign, a time before 1970 is larger than any other: one pass checks both ends.
    if len(column) == 1:
        (time_us,) = _UINT64.unpack_from(column.buffers()[1], column.offset * 8)
        if time_us <= TIME_US_MAX:
            return
    times = np.frombuffer(column.buffers()[1], dtype=np.uint64, count=len(column), offset=column.offset * 8)
    if int(times.max()) > TIME_US_MAX:
        wrong = times.max().view(np.int64)
        raise InvalidMessage(field, f"is {wrong} µs since 1970, outside of 1970 to 9999")


def _check_headers(column: pa.Array, limits: Limits) -> None:
    offsets = offsets_of(column)
    counts = np.diff(offsets)
    if (most := int(counts.max())) > limits.headers_max:
        raise LimitExceeded("headers", limits.headers_max, most, unit="headers", setting="limits.headers_max")
    first, entries = int(offsets[0]), int(offsets[-1] - offsets[0])
    if not entries:
        return
    names, values = column.keys.slice(first, entries), column.items.slice(first, entries)
    if names.null_count:
        raise InvalidBatch(f"{names.null_count:,} header names are null", column="headers")
    if values.null_count:
        raise InvalidBatch(f"{values.null_count:,} header values are null; leave the header out", column="headers")
    longest = int((np.diff(offsets_of(names)) + np.diff(offsets_of(values))).max())
    if longest > limits.header_bytes_max:
        raise LimitExceeded("header", limits.header_bytes_max, longest, setting="limits.header_bytes_max")
    _check_unique_names(names, counts)


def _check_unique_names(names: pa.Array, counts: np.ndarray) -> None:
    if int(counts.max()) < 2:
        return
    encoded = names.dictionary_encode()
    most = int(counts[0])
    if most * len(counts) == len(names) and (counts == most).all():
        # Usually every message has the same headers in the same order: then one row speaks for all.
        table = encoded.indices.to_numpy().reshape(len(counts), most)
        if (table == table[0]).all() and len(np.unique(table[0])) == most:
            return
    rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    pairs = rows * len(encoded.dictionary) + encoded.indices.to_numpy()
    pairs.sort()
    repeated = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(repeated):
        name = encoded.dictionary[int(pairs[repeated[0]]) % len(encoded.dictionary)].as_py()
        raise InvalidMessage("headers", f"has {name[:64]!r} twice in one message")


def _broken_column(records: pa.RecordBatch) -> str | None:
    for place, name in enumerate(records.schema.names):
        column = records.column(place)
        if len(column) != records.num_rows:
            return str(name)
        try:
            column.validate(full=True)
        except (pa.ArrowException, ValueError):
            return str(name)
    return None


def first_line(error: BaseException) -> str:
    """What Arrow says, short enough for an error message, without its numbering of columns."""
    return _NUMBERING.sub("", (str(error) or type(error).__name__).splitlines()[0])[:300]
