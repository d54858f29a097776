"""Batches from Python values. What is the same for all messages is set once, not message by message."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from operator import countOf
from typing import NamedTuple

import pyarrow as pa

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import arrays
from sealane.message.batch import DEFAULT_META, Batch, BatchMeta
from sealane.message.columns import constant_times, kept_schema, repeated
from sealane.message.ids import Stamp, generate_ids, parse_id
from sealane.message.limits import Limits
from sealane.message.plain import make_plain
from sealane.message.schema import (
    COLUMNS,
    CREATED,
    DELIVER_AT,
    EXPIRES,
    HEADERS,
    ID,
    ID_TYPE,
    KEY,
    PAYLOAD,
    PRIORITY,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    PRIORITY_MIN,
    TIME_TYPE,
    TIME_US_MAX,
)
from sealane.message.validation import check_lengths

_BINARY = pa.binary()
_GIVEN = BatchMeta(given_ids=True)
_OFFSETS_OF_ONE = struct.Struct("<ii")


class Row(NamedTuple):
    """One message to publish. An `id` of None is generated."""

    payload: bytes
    key: bytes | None = None
    headers: Mapping[str, str] | None = None
    priority: int = PRIORITY_DEFAULT
    expires_us: int | None = None
    deliver_at_us: int | None = None
    id: uuid.UUID | str | bytes | None = None


_PLAIN = Row(b"")[1:]
"""What a row has beside its payload if it has nothing else."""


def from_payloads(
    payloads: Sequence[bytes],
    stamp: Stamp,
    *,
    limits: Limits,
    key: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    priority: int = PRIORITY_DEFAULT,
    expires_us: int | None = None,
    deliver_at_us: int | None = None,
) -> Batch:
    """A batch with these payloads and generated ids; everything else is the same for all of its messages."""
    rows = _checked_count(payloads, limits)
    if (key, headers, priority, expires_us, deliver_at_us, None) == _PLAIN:
        batch = _plain(payloads, stamp, limits)
        if batch is not None:
            return batch
    columns = {
        ID: generate_ids(rows, stamp),
        PAYLOAD: _payload_column(payloads, rows, limits),
        CREATED: constant_times(stamp.created_us, rows),
    }
    if key is not None:
        _check_key(key, limits)
        columns[KEY] = _one_value(key) if rows == 1 else repeated(key, rows)
    if headers:
        columns[HEADERS] = arrays.headers([_checked_headers(headers, limits)] * rows)
    if priority != PRIORITY_DEFAULT or type(priority) is not int:
        _check_priority(priority)
        columns[PRIORITY] = arrays.numbers([priority] * rows, "i1", pa.int8())
    if expires_us is not None:
        _check_time("expires", expires_us)
        columns[EXPIRES] = constant_times(expires_us, rows)
    if deliver_at_us is not None:
        _check_time("deliver_at", deliver_at_us)
        columns[DELIVER_AT] = constant_times(deliver_at_us, rows)
    return _finished(columns, DEFAULT_META, limits)


def from_rows(rows: Sequence[Row], stamp: Stamp, *, limits: Limits) -> Batch:
    """A batch of messages that differ. Either every row has an id, or none."""
    count = _checked_count(rows, limits)
    payloads, *others = zip(*rows, strict=True)
    if list(map(countOf, others, _PLAIN)) == [count] * len(_PLAIN):
        batch = _plain(payloads, stamp, limits)
        if batch is not None:
            return batch
    keys, headers, priorities, expires, deliver_at, ids = others
    columns = {
        ID: generate_ids(count, stamp),
        PAYLOAD: _payload_column(payloads, count, limits),
        CREATED: constant_times(stamp.created_us, count),
    }
    # Columns that no row uses are recognised by one count each; only what is used is looked at value by value.
    if keys.count(None) != count:
        for key in keys:
            if key is not None:
                _check_key(key, limits)
        columns[KEY] = arrays.binaries(keys)
    if any(headers):
        pairs = [_checked_headers(mapping, limits) if mapping else None for mapping in headers]
        columns[HEADERS] = arrays.headers(pairs)
    if priorities.count(PRIORITY_DEFAULT) != count:
        for priority in priorities:
            _check_priority(priority)
        columns[PRIORITY] = arrays.numbers(priorities, "i1", pa.int8())
    for place, field, times in ((EXPIRES, "expires", expires), (DELIVER_AT, "deliver_at", deliver_at)):
        if times.count(None) != count:
            for time_us in times:
                if time_us is not None:
                    _check_time(field, time_us)
            columns[place] = arrays.numbers(times, "<i8", TIME_TYPE)
        meta = DEFAULT_META
    if (missing := ids.count(None)) != count:
        if missing:
            raise InvalidMessage("id", f"is missing in {missing:,} of {count:,} messages; give all of a batch or none")
        given = b"".join(map(parse_id, ids))
        columns[ID] = pa.Array.from_buffers(ID_TYPE, count, [None, pa.py_buffer(given)], 0)
        meta = _GIVEN
    return _finished(columns, meta, limits)


def _plain(payloads: Sequence[bytes], stamp: Stamp, limits: Limits) -> Batch | None:
    """A batch of messages that have only a payload, made without Arrow: what most publishes are.

    Arrow would copy each payload twice, into a column and then into a message.

    None if they are not as they should be: the general way says why.
    """
    if not isinstance(payloads, list | tuple):
        payloads = list(payloads)
    made = make_plain(stamp, payloads, payload_bytes_max=limits.payload_bytes_max)
    if made is None:
        return None
    encoded, layout = made
    if layout.nbytes > limits.batch_bytes_max:
        return None
    return Batch.unread(pa.py_buffer(encoded), DEFAULT_META, layout)


def _finished(columns: dict[int, pa.Array], meta: BatchMeta, limits: Limits) -> Batch:
    """The batch with the columns that were made; the others say nothing."""
    absent = sum(1 << place for place in range(COLUMNS) if place not in columns)
    kept = pa.RecordBatch.from_arrays([columns[place] for place in sorted(columns)], schema=kept_schema(absent))
    batch = Batch.of_kept(kept, meta, absent, exact=True)
    if batch.nbytes > limits.batch_bytes_max:
        raise LimitExceeded("batch", limits.batch_bytes_max, batch.nbytes, setting="limits.batch_bytes_max")
    return batch


def _checked_count(items: Sequence[object], limits: Limits) -> int:
    count = len(items)
    if not count:
        raise InvalidBatch("it holds no messages")
    if count > limits.batch_messages_max:
        raise LimitExceeded(
            "batch", limits.batch_messages_max, count, unit="messages", setting="limits.batch_messages_max"
        )
    return count


def _payload_column(payloads: Sequence[bytes], rows: int, limits: Limits) -> pa.Array:
    if countOf(map(type, payloads), bytes) != rows:
        _check_payload_types(payloads)
        payloads = list(map(bytes, payloads))
    if rows == 1:
        _check_payload_length(payloads[0], limits)
        return _one_value(payloads[0])
    try:
        column = arrays.binaries(payloads)
    except OverflowError:
        together = sum(map(len, payloads))
        raise LimitExceeded("batch", limits.batch_bytes_max, together, setting="limits.batch_bytes_max") from None
    check_lengths(column, "payload", limits.payload_bytes_max)
    return column


def _check_payload_length(payload: bytes, limits: Limits) -> None:
    if len(payload) > limits.payload_bytes_max:
        raise LimitExceeded("payload", limits.payload_bytes_max, len(payload), setting="limits.payload_bytes_max")


def _one_value(value: bytes) -> pa.Array:
    """A binary column of one row, its buffers put into place by hand: half the time of a conversion."""
    offsets = _OFFSETS_OF_ONE.pack(0, len(value))
    return pa.Array.from_buffers(_BINARY, 1, [None, pa.py_buffer(offsets), pa.py_buffer(value)], 0)


def _check_payload_types(payloads: Sequence[bytes]) -> None:
    for payload in payloads:
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise InvalidMessage("payload", f"is a {type(payload).__name__}; give bytes")


def _check_key(key: bytes, limits: Limits) -> None:
    if not isinstance(key, bytes):
        raise InvalidMessage("key", f"is a {type(key).__name__}; give bytes")
    if len(key) > limits.key_bytes_max:
        raise LimitExceeded("key", limits.key_bytes_max, len(key), setting="limits.key_bytes_max")


def _checked_headers(headers: Mapping[str, str], limits: Limits) -> list[tuple[str, str]]:
    if not isinstance(headers, Mapping):
        raise InvalidMessage("headers", f"is a {type(headers).__name__}; give a mapping of text to text")
    if len(headers) > limits.headers_max:
        raise LimitExceeded("headers", limits.headers_max, len(headers), unit="headers", setting="limits.headers_max")
    pairs = list(headers.items())
    for name, value in pairs:
        for text in (name, value):
            if not isinstance(text, str):
                raise InvalidMessage("headers", f"has a {type(text).__name__}; names and values are text")
        try:
            size = len(name.encode()) + len(value.encode())
        except UnicodeEncodeError:
            raise InvalidMessage("headers", f"has {name[:64]!r}, which cannot be written as UTF-8") from None
        if size > limits.header_bytes_max:
            raise LimitExceeded("header", limits.header_bytes_max, size, setting="limits.header_bytes_max")
    return pairs


def _check_priority(priority: int) -> None:
    if type(priority) is not int or not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise InvalidMessage("priority", f"is {priority!r}, it is a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}")


def _check_time(field: str, time_us: int) -> None:
    if type(time_us) is not int or not 0 <= time_us <= TIME_US_MAX:
        raise InvalidMessage(field, f"is {time_us!r}; give whole µs since 1970, up to the year 9999")
