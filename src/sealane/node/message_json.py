"""Messages as JSON objects, as the HTTP door answers with them and webhooks are sent them.

A column is turned at a time: a batch of thousands is one conversion for its times, one for its headers. Payloads and
keys are text where they are UTF-8, else base64 under another name, so that a reader never has to guess.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from sealane.message import PRIORITY_DEFAULT, Batch
from sealane.message.schema import CREATED, ENVELOPE, HEADERS, KEY, PRIORITY
from sealane.node.deliveries import Delivery, Part, offsets_of


def deliveries_json(deliveries: Iterable[Delivery]) -> list[dict[str, Any]]:
    """All messages of these, in their order."""
    return [message for delivery in deliveries for part in delivery.parts for message in part_json(delivery, part)]


def part_json(delivery: Delivery, part: Part, *, raw: bool = False) -> list[dict[str, Any]]:
    """The messages of one stored batch. `raw`: payloads and keys are the bytes themselves, for a format that has bytes.

    Only what was sealed end to end has `envelope_base64`, or `envelope`: without it nobody could open the payload.
    """
    batch, partition = part.batch, delivery.partition
    offsets = list(part.offsets) if isinstance(part.offsets, range) else part.offsets.tolist()
    columns = zip(
        map(uuid_text, batch.ids()),
        map(_raw_payload if raw else _payload, batch.payloads()),
        map(_raw_key if raw else _key, _column(batch, KEY, None)),
        map(dict, _column(batch, HEADERS, ())),
        _column(batch, PRIORITY, PRIORITY_DEFAULT),
        _created(batch),
        _attempts(delivery.attempts, part, offsets),
        offsets,
        strict=True,
    )
    messages = [
        {
            "id": identity,
            payload_name: payload,
            key_name: key,
            "headers": headers,
            "priority": priority,
            "created": created,
            "attempt": attempt,
            "partition": partition,
            "offset": offset,
        }
        for identity, (payload_name, payload), (key_name, key), headers, priority, created, attempt, offset in columns
    ]
    if batch.meta.envelope is not None or not batch.absent >> ENVELOPE & 1:
        for message, envelope in zip(messages, _column(batch, ENVELOPE, batch.meta.envelope), strict=True):
            if envelope is not None and raw:
                message["envelope"] = envelope
            elif envelope is not None:
                message["envelope_base64"] = base64.b64encode(envelope).decode()
    return messages


def _column(batch: Batch, place: int, absent: object) -> Sequence[Any]:
    """The values at this place, or `absent` for each message where the batch has no such column. No headers are ()."""
    if batch.absent >> place & 1:
        return [absent] * len(batch)
    values: list[Any] = batch.column(place).to_pylist()
    return [value or () for value in values] if place == HEADERS else values


def _created(batch: Batch) -> list[str]:
    """When each was made: RFC 3339 in UTC, to the microsecond."""
    if batch.layout is not None:  # Arrow has not opened it, and need not for this.
        times = np.frombuffer(batch.unopened(), dtype="<i8", count=len(batch), offset=batch.layout.times_at)
    else:
        times = batch.column(CREATED).view(pa.int64()).to_numpy()
    created: list[str] = np.datetime_as_string(times.view("datetime64[us]"), unit="us", timezone="UTC").tolist()
    return created


def _attempts(later: Sequence[tuple[BitMap64, int]], part: Part, offsets: Sequence[int]) -> list[int]:
    if not later:
        return [1] * len(offsets)
    mine = offsets_of(part)
    attempt_of = {offset: attempt for group, attempt in later for offset in group & mine}
    return [attempt_of.get(offset, 1) for offset in offsets]


def uuid_text(identity: bytes) -> str:
    """As `str(UUID(bytes=…))`, in a fifth of the time."""
    digits = identity.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _payload(value: bytes) -> tuple[str, str]:
    try:
        return "payload", value.decode()
    except UnicodeDecodeError:
        return "payload_base64", base64.b64encode(value).decode()


def _key(value: bytes | None) -> tuple[str, str | None]:
    if value is None:
        return "key", None
    try:
        return "key", value.decode()
    except UnicodeDecodeError:
        return "key_base64", base64.b64encode(value).decode()


def _raw_payload(value: bytes) -> tuple[str, bytes]:
    return "payload", value


def _raw_key(value: bytes | None) -> tuple[str, bytes | None]:
    return "key", value
