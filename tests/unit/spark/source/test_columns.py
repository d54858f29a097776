"""Messages as columns: exactly Spark's types, the values that were stored, and no copy of what is large."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from sealane.engine import Stored
from sealane.message import Batch, BatchMeta, Limits, Stamp, from_payloads
from sealane.spark.source.rows.columns import MESSAGE_SCHEMA, Origin, message_columns
from sealane.spark.source.spark_types import message_columns as spark_columns
from tests.unit.message.strategies import batches

NAMES = "id key payload headers priority created expires deliver_at producer domain topic partition offset"
IN_THE_BATCH = ("id", "key", "payload", "headers", "priority", "created", "expires", "deliver_at")
STAMP = Stamp(1_700_000_000_000_000, bytes(16))
ORIGIN = Origin("shop/orders", 3)


def plain(*payloads: bytes, producer: bytes | None = None) -> Batch:
    return from_payloads(payloads, STAMP, limits=Limits()).with_meta(BatchMeta(producer=producer))


def table(*stored: Stored) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_arrays(message_columns(stored, ORIGIN), schema=MESSAGE_SCHEMA)
    batch.validate(full=True)
    return batch


def expected(*stored: Stored) -> list[dict[str, Any]]:
    rows = []
    for base, batch in stored:
        for number, row in enumerate(batch.records.select(IN_THE_BATCH).to_pylist()):
            place = {"domain": "shop", "topic": "orders", "partition": 3, "offset": base + number}
            rows.append({**row, "producer": batch.meta.producer, **place})
    return rows


def test_the_columns_are_those_that_spark_expects_to_the_last_detail() -> None:
    schema = spark_columns()
    assert schema.fieldNames() == NAMES.split()
    assert to_arrow_schema(schema, timezone="UTC").equals(MESSAGE_SCHEMA, check_metadata=True)
    assert all(field.nullable for field in schema)
    assert schema["headers"].dataType.simpleString() == "map<string,string>"
    assert schema["created"].dataType.simpleString() == "timestamp"


@given(st.data())
def test_rows_are_the_stored_messages_with_where_they_are(data: st.DataObject) -> None:
    stored, base = [], data.draw(st.integers(0, 1 << 40))
    for batch in data.draw(st.lists(batches(), min_size=1, max_size=4)):
        producer = data.draw(st.sampled_from([None, b"p" * 16, b"q" * 16]))
        start = data.draw(st.integers(0, len(batch) - 1))
        stop = data.draw(st.integers(start + 1, len(batch)))
        part = batch.with_meta(BatchMeta(producer=producer)).slice(start, stop)
        stored.append(Stored(base, part))
        base += len(part) + data.draw(st.sampled_from([0, 0, 5]))  # A gap is what was lost in between.
    assert table(*stored).to_pylist() == expected(*stored)


@given(st.data())
def test_what_is_yielded_survives_the_way_to_spark(data: st.DataObject) -> None:
    batch = data.draw(batches())
    start = data.draw(st.integers(0, len(batch) - 1))
    rows = table(Stored(7, batch.slice(start, len(batch))))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MESSAGE_SCHEMA) as stream:
        stream.write_batch(rows)
    (received,) = pa.ipc.open_stream(sink.getvalue())
    received.validate(full=True)
    assert received.equals(rows)


def test_batches_under_different_envelopes_become_one() -> None:
    first, second = plain(b"a", b"b"), plain(b"c")
    stored = [
        Stored(0, first.with_meta(BatchMeta(producer=b"p" * 16, envelope=b"one"))),
        Stored(2, second.with_meta(BatchMeta(producer=b"q" * 16, envelope=b"two"))),
    ]
    rows = table(*stored)
    assert rows["payload"].to_pylist() == [b"a", b"b", b"c"]
    assert rows["producer"].to_pylist() == [b"p" * 16, b"p" * 16, b"q" * 16]


def test_one_batch_is_not_copied() -> None:
    batch = plain(*[bytes([number]) * 1_000 for number in range(200)]).slice(50, 150)
    rows = table(Stored(50, batch))
    for name in ("id", "payload", "created"):
        theirs, ours = batch.records[name].buffers()[-1], rows[name].buffers()[-1]
        assert theirs.address <= ours.address < theirs.address + theirs.size


def test_columns_that_say_the_same_of_every_row_are_made_once() -> None:
    one, other = table(Stored(0, plain(b"x", b"y"))), table(Stored(2, plain(b"z")))
    for name in ("domain", "topic", "partition"):
        assert one[name].buffers()[-1].address == other[name].buffers()[-1].address
