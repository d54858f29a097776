"""Arrow IPC streams of columns that a stranger has chosen, as HTTP and gRPC take them."""

from __future__ import annotations

import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa

from sealane.doors.arrow_streams import read_batches
from sealane.errors import SealaneError
from sealane.message import SCHEMA, Limits, Stamp
from tests.fuzz.target import Target

LIMITS = Limits(batch_messages_max=1000)
_STAMP = Stamp(1_760_000_000_123_456, bytes(range(16)))
_MOMENT = datetime.datetime(2026, 5, 4, tzinfo=datetime.UTC)


def _stream(table: pa.Table, *, rows: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows)
    return bytes(sink.getvalue().to_pybytes())


def _row(number: int) -> dict[str, Any]:
    return {
        "id": UUID(int=number).bytes,
        "key": b"key" if number % 2 else None,
        "payload": b"payload %d" % number,
        "headers": [("kind", "é"), ("number", str(number))] if number % 3 else None,
        "priority": 1 + number % 10,
        "created": _MOMENT,
        "expires": _MOMENT if number % 2 else None,
        "deliver_at": None,
        "envelope": None,
    }


SEEDS = (
    _stream(pa.table({"payload": pa.array([b"one", b"two"], pa.binary())})),
    _stream(pa.table({"payload": pa.array(["text"] * 4, pa.large_string()), "key": pa.array(["k"] * 4)}), rows=2),
    _stream(pa.Table.from_pylist([_row(number) for number in range(9)], schema=SCHEMA), rows=4),
)


def check(data: bytes) -> bool:
    try:
        batches = read_batches(data, _STAMP, limits=LIMITS)
    except SealaneError:
        return False
    for batch in batches:
        batch.records.validate(full=True)
        assert 1 <= len(batch) <= LIMITS.batch_messages_max
        assert batch.nbytes <= LIMITS.batch_bytes_max
        assert len(batch.payloads()) == len(batch.ids()) == len(batch)
        assert batch.traits.priority_min >= 1
    return True


TARGET = Target("arrow_stream", SEEDS, check)
