"""Histories as they cross the wire: what a client is told is looked at before Arrow believes it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import Subscribed, encode_events
from sealane.delivery.history import history_rows
from sealane.errors import InvalidBatch
from sealane.node.history import History

HISTORY = History(8, history_rows([(7, encode_events([Subscribed("workers", SubscriptionConfig(), 0)]))]))


def stream(batch: pa.RecordBatch, batches: int = 1) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def test_a_history_is_the_same_at_the_other_end() -> None:
    assert History.of_stream(8, memoryview(HISTORY.to_stream())) == HISTORY


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"no arrow",
        stream(HISTORY.rows, batches=0),
        stream(HISTORY.rows, batches=2),
        stream(pa.record_batch({"entry": [1]})),
        HISTORY.to_stream()[:-40],
    ],
)
def test_what_is_no_history_is_refused(said: bytes) -> None:
    with pytest.raises(InvalidBatch):
        History.of_stream(8, memoryview(said))


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_whatever_bytes_come_they_are_a_history_or_refused(place: int, value: int) -> None:
    data = bytearray(HISTORY.to_stream())
    data[place % len(data)] = value
    try:
        History.of_stream(8, memoryview(data)).rows.validate(full=True)
    except InvalidBatch:
        pass
