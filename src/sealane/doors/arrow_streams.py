"""Messages as Arrow IPC streams: how they come in and go out by the doors whose clients speak Arrow on their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.message import SCHEMA, Batch, Limits, Stamp, from_arrow
from sealane.message.ipc_stream import read_stream
from sealane.node.deliveries import Delivery, Part
from sealane.node.pulling.pull import Pulled

DELIVERED = SCHEMA
for _added in (pa.field("partition", pa.int32()), pa.field("offset", pa.int64()), pa.field("attempt", pa.int32())):
    DELIVERED = DELIVERED.append(_added)
"""The columns of what is pulled: those of a message, where it is stored, and how often it was tried with this one."""


def read_batches(data: bytes | memoryview, stamp: Stamp, *, limits: Limits) -> list[Batch]:
    """The batches that a stream holds, each within the limits. Raises `InvalidBatch`, `InvalidMessage` or
    `LimitExceeded`.
    """
    return from_arrow(read_stream(data), stamp, limits=limits)


def written(pulled: Pulled) -> pa.Buffer:
    """What was pulled, as one stream. The lease and its deadline (µs since 1970) are in its schema's metadata."""
    metadata = {"deadline_us": str(pulled.deadline_us), "lease": pulled.lease} if pulled.lease is not None else {}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, DELIVERED.with_metadata(metadata)) as stream:
        for delivery in pulled.deliveries:
            for part in delivery.parts:
                stream.write_batch(_delivered(delivery, part))
    return sink.getvalue()


def _delivered(delivery: Delivery, part: Part) -> pa.RecordBatch:
    offsets = np.asarray(part.offsets, dtype=np.int64)
    attempts = np.ones(len(offsets), np.int32)
    for failed, attempt in delivery.attempts:
        attempts[[int(offset) in failed for offset in offsets]] = attempt
    records = part.batch.records
    # Arrow pads what it writes of a slice with what follows in memory: other people's messages. A copy has none.
    records = pa.concat_batches([records, records.slice(0, 0)])
    places = [np.full(len(offsets), delivery.partition, np.int32), offsets, attempts]
    return pa.RecordBatch.from_arrays([*records.columns, *map(pa.array, places)], schema=DELIVERED)
