"""A journal as a table: what has happened to a partition's messages, for whoever asks later.

The journal is written for folding. Here each of its events that tells something of messages or subscriptions is a row,
with the offsets it is about as runs. That messages were published is not in it: they are a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from sealane.delivery.events import (
    Acked,
    Advanced,
    Configured,
    DeadLettered,
    Dropped,
    Event,
    Expired,
    Failed,
    Granted,
    Lost,
    Published,
    Released,
    Snapshot,
    Sought,
    Subscribed,
    Unsubscribed,
    decode_events,
)
from sealane.delivery.offsets import Packed, unpack
from sealane.delivery.offsets import runs as runs_of
from sealane.delivery.snapshot import standing_of

RUN = pa.struct([pa.field("first", pa.int64(), nullable=False), pa.field("stop", pa.int64(), nullable=False)])
_TIME = pa.timestamp("us", tz="UTC")

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("entry", pa.int64(), nullable=False),
        pa.field("event", pa.utf8(), nullable=False),
        pa.field("subscription", pa.utf8()),
        pa.field("runs", pa.list_(RUN)),
        pa.field("lease", pa.int64()),
        pa.field("consumer", pa.utf8()),
        pa.field("time", _TIME),
        pa.field("until", _TIME),
        pa.field("cause", pa.utf8()),
        pa.field("reason", pa.utf8()),
        pa.field("mode", pa.utf8()),
        pa.field("filter", pa.utf8()),
    ]
)
"""`entry` is the journal's number: rows of one entry became durable together. `until` is a lease's deadline, or when a
failed message is due again."""

NAMES: dict[type[Event], str] = {
    Subscribed: "subscribed",
    Configured: "configured",
    Unsubscribed: "unsubscribed",
    Granted: "granted",
    Acked: "acked",
    Failed: "failed",
    Released: "released",
    DeadLettered: "dead-lettered",
    Expired: "expired",
    Dropped: "dropped",
    Sought: "sought",
    Advanced: "advanced",
    Lost: "lost",
    Published: "addressed",
}
"""How rows call what happened. Of what is published, only that it is for one subscription alone is told."""
STANDING = "standing"
"""One more: a snapshot's word on a subscription, for whoever begins to read there."""

Row = dict[str, Any]


def history_rows(entries: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
    """The rows of journal entries, in their order. What tells nothing of messages has none."""
    found = [row for number, entry in entries for event in decode_events(entry) for row in _rows(number, event)]
    return pa.RecordBatch.from_pylist(found, schema=HISTORY_SCHEMA)


def _rows(entry: int, event: Event) -> Iterable[Row]:
    if isinstance(event, Snapshot):
        return [
            {"entry": entry, "event": STANDING, "subscription": name, "runs": [_run(0, floor)], **_told(config)}
            for name, config, floor in standing_of(event.state)
        ]
    row = _row(event)
    return () if row is None else [{"entry": entry, "event": NAMES[type(event)], **row}]


def _row(event: Event) -> Row | None:
    match event:
        case Published():
            runs = [_run(event.base, event.base + event.count)]
            return None if event.only is None else {"subscription": event.only, "runs": runs}
        case Lost():
            return {"runs": [_run(event.start, event.stop)], "time": event.time_us}
        case Subscribed():
            return {"subscription": event.subscription, "runs": [_run(0, event.floor)], **_told(event.config)}
        case Configured():
            return {"subscription": event.subscription, **_told(event.config)}
        case Unsubscribed():
            return {"subscription": event.subscription}
        case Sought() | Advanced():
            return {"subscription": event.subscription, "runs": [_run(0, event.offset)], "time": event.time_us}
        case Granted():
            return {**_happened(event), "lease": event.lease, "consumer": event.consumer, "until": event.deadline_us}
        case Failed():
            more = {"cause": event.cause, "reason": event.reason, "until": event.due_us}
            return {**_happened(event), "lease": event.lease, **more}
        case Acked():
            return {**_happened(event), "lease": event.lease}
        case Released():
            return {"subscription": event.subscription, "runs": _runs(event.offsets), "lease": event.lease}
        case DeadLettered() | Expired() | Dropped():
            return _happened(event)
    return None


def _happened(event: Granted | Failed | Acked | DeadLettered | Expired | Dropped) -> Row:
    return {"subscription": event.subscription, "runs": _runs(event.offsets), "time": event.time_us}


def _told(config: Any) -> Row:
    return {"mode": config.mode, "filter": config.filter}


def _runs(offsets: Packed) -> list[dict[str, int]]:
    if not isinstance(offsets, bytes):
        return [_run(*offsets)]
    return [_run(first, stop) for first, stop in runs_of(unpack(offsets))]


def _run(first: int, stop: int) -> dict[str, int]:
    return {"first": first, "stop": stop}
