"""Dead letters: what messages look like in the dead-letter topic, and on their way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sealane.delivery.dying import DeadGroup
from sealane.message import SCHEMA, Batch, BatchMeta
from sealane.node.deliveries import Part

REDRIVE_SUBSCRIPTION = "_redrive"
"""Holds a dead-letter topic's messages until they are driven back, past any retention."""
MOVE_MESSAGES_MAX = 1_000
"""Dead letters move in commits of at most this many."""
PREFIX = "sealane-dead-"
"""The headers that tell a dead letter's story start so, and are taken off again on its way back."""

Headers = dict[str, str] | None


def dead_topic_name(topic: str, subscription: str) -> str:
    return f"{topic}.{subscription}.dead"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where dead letters come from."""

    topic: str
    subscription: str
    partition: int


def dead_batch(origin: Origin, group: DeadGroup, part: Part, attempts: int, time_us: int) -> Batch:
    """The messages as they were, plus headers that say why they are here; they no longer expire or wait."""
    story = {
        f"{PREFIX}topic": origin.topic,
        f"{PREFIX}subscription": origin.subscription,
        f"{PREFIX}partition": str(origin.partition),
        f"{PREFIX}attempts": str(attempts),
        f"{PREFIX}reason": group.reason or group.cause,
        f"{PREFIX}time": str(time_us),
    }
    headers: list[Headers] = [
        {**(before or {}), **story, f"{PREFIX}offset": str(int(offset))}
        for before, offset in zip(headers_of(part.batch), part.offsets, strict=True)
    ]
    return _with_headers(part.batch, headers, BatchMeta(schema_id=part.batch.meta.schema_id))


def revived_batch(batch: Batch, subscription: str) -> Batch:
    """Dead letters without their story, addressed to the one subscription that had given them up."""
    headers: list[Headers] = [
        {name: value for name, value in (before or {}).items() if not name.startswith(PREFIX)} or None
        for before in headers_of(batch)
    ]
    return _with_headers(batch, headers, BatchMeta(schema_id=batch.meta.schema_id, only=subscription))


def headers_of(batch: Batch) -> list[Headers]:
    listed = batch.records.column("headers").to_pylist()
    return [None if pairs is None else dict(pairs) for pairs in listed]


def _with_headers(batch: Batch, headers: Sequence[Headers], meta: BatchMeta) -> Batch:
    rows = len(batch)
    pairs = [None if row is None else list(row.items()) for row in headers]
    replaced = {
        "headers": pa.array(pairs, SCHEMA.field("headers").type),
        "expires": pa.nulls(rows, SCHEMA.field("expires").type),
        "deliver_at": pa.nulls(rows, SCHEMA.field("deliver_at").type),
    }
    columns = [replaced.get(name, column) for name, column in zip(SCHEMA.names, batch.records.columns, strict=True)]
    return Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), meta)
