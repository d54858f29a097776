from __future__ import annotations

import datetime
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import SCHEMA, Batch, Limits, Row, Stamp, decode, encode, from_arrow, from_rows
from tests.unit.message.strategies import LIMITS, STAMP, batches, rows_of, stamps


def one(data: pa.RecordBatch | pa.Table) -> Batch:
    (batch,) = from_arrow(data, STAMP, limits=LIMITS)
    return batch


@given(batches(), stamps)
def test_the_records_of_a_batch_make_the_same_messages(batch: Batch, stamp: Stamp) -> None:
    (again,) = from_arrow(batch.records, stamp, limits=LIMITS)
    assert again.records.equals(batch.records)
    assert again.meta.given_ids
    assert decode(encode(again), limits=LIMITS).records.equals(batch.records)


@given(st.lists(batches(), min_size=1, max_size=4), st.data())
def test_a_table_in_chunks_and_slices_makes_its_messages_in_order(parts: list[Batch], data: st.DataObject) -> None:
    table = pa.Table.from_batches([part.records for part in parts])
    start = data.draw(st.integers(0, table.num_rows - 1))
    made = from_arrow(table.slice(start), STAMP, limits=LIMITS)
    rows = [row for part in parts for row in rows_of(part)]
    assert [row for batch in made for row in rows_of(batch)] == rows[start:]


def test_only_the_payload_has_to_be_there() -> None:
    batch = one(pa.table({"payload": [b"a", b"b"]}))
    assert batch.records.schema.equals(SCHEMA)
    assert batch.payloads() == [b"a", b"b"]
    assert batch.traits.plain
    assert not batch.meta.given_ids
    assert batch.records.column("created").cast("int64").to_pylist() == [STAMP.created_us] * 2


def test_generated_ids_count_on_through_the_chunks_of_a_table() -> None:
    table = pa.table({"payload": pa.chunked_array([[b"a"], [], [b"b", b"c"]], pa.binary())})
    ids = [id_ for batch in from_arrow(table, STAMP, limits=LIMITS) for id_ in batch.ids()]
    assert len(set(ids)) == 3
    assert sorted(ids) == ids


@pytest.mark.parametrize(
    "payload",
    [
        pa.array(["a", "b"]),
        pa.array(["a", "b"], pa.large_utf8()),
        pa.array(["a", "b"], pa.string_view()),
        pa.array([b"a", b"b"], pa.large_binary()),
        pa.array([b"a", b"b"], pa.binary_view()),
        pa.array([b"a", b"b"], pa.binary(1)),
        pa.array(["a", "b"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_text_and_every_kind_of_binary_are_payloads(payload: pa.Array) -> None:
    assert one(pa.table({"payload": payload})).payloads() == [b"a", b"b"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64()])
def test_whole_numbers_are_priorities_and_a_null_is_the_default(kind: pa.DataType) -> None:
    batch = one(pa.table({"payload": [b"a", b"b"], "priority": pa.array([9, None], kind)}))
    assert batch.records.column("priority").to_pylist() == [9, 5]


def test_times_of_any_unit_and_zone_are_taken() -> None:
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for kind in (pa.timestamp("s", "UTC"), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Rome")):
        naive = moment if kind.tz else moment.replace(tzinfo=None)
        batch = one(pa.table({"payload": [b"a"], "created": pa.array([naive], kind)}))
        assert batch.records.column("created")[0].as_py() == moment


def test_a_null_creation_time_is_the_stamp_s() -> None:
    batch = one(pa.table({"payload": [b"a", b"b"], "created": pa.array([None, 7], pa.timestamp("us", "UTC"))}))
    assert batch.records.column("created").cast("int64").to_pylist() == [STAMP.created_us, 7]


VALUE = uuid.UUID("0199c1a0-4f00-7abc-8def-0123456789ab")


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([VALUE.bytes], pa.binary(16)),
        pa.array([VALUE.bytes], pa.binary()),
        pa.array([VALUE.bytes], pa.large_binary()),
        pa.array([str(VALUE)]),
        pa.array([VALUE.bytes], pa.uuid()),
    ],
    ids=lambda array: str(array.type),
)
def test_ids_are_given_in_any_form_of_a_uuid(ids: pa.Array) -> None:
    batch = one(pa.table({"payload": [b"a"], "id": ids}))
    assert batch.ids() == [VALUE.bytes]
    assert batch.meta.given_ids


def test_headers_of_wider_types_are_taken() -> None:
    kind = pa.map_(pa.large_utf8(), pa.large_utf8())
    batch = one(pa.table({"payload": [b"a", b"b"], "headers": pa.array([[("x", "y")], None], kind)}))
    assert batch.records.column("headers").to_pylist() == [[("x", "y")], None]


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"key": [b"a"]}, "payload"),
        ({"payload": [b"a"], "offset": [1]}, "offset"),
        ({"payload": [5]}, "payload"),
        ({"payload": pa.array([None], pa.binary())}, "payload"),
        ({"payload": [b"a"], "priority": ["high"]}, "priority"),
        ({"payload": [b"a"], "priority": [300]}, "priority"),
        ({"payload": [b"a"], "headers": ["a=b"]}, "headers"),
        ({"payload": [b"a"], "headers": pa.array([[("a", None)]], pa.map_(pa.utf8(), pa.utf8()))}, "headers"),
        ({"payload": [b"a"], "id": [b"short"]}, "id"),
        ({"payload": [b"a"], "id": pa.array([None], pa.binary(16))}, "id"),
        ({"payload": [b"a"], "created": pa.array([1], pa.timestamp("ns"))}, "created"),
    ],
)
def test_what_is_no_message_column_is_refused_by_name(columns: dict[str, Any], column: str) -> None:
    with pytest.raises(InvalidBatch) as caught:
        from_arrow(pa.table(columns), STAMP, limits=LIMITS)
    assert caught.value.column == column


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([b"a"]), pa.array([b"b"])], names=["payload", "payload"])
    with pytest.raises(InvalidBatch, match="twice"):
        from_arrow(twice, STAMP, limits=LIMITS)


def test_values_are_checked_as_everywhere() -> None:
    with pytest.raises(InvalidMessage) as caught:
        from_arrow(pa.table({"payload": [b"a"], "priority": [11]}), STAMP, limits=LIMITS)
    assert caught.value.field == "priority"
    with pytest.raises(LimitExceeded) as exceeded:
        from_arrow(pa.table({"payload": [b"a" * 11]}), STAMP, limits=Limits(payload_bytes_max=10))
    assert (exceeded.value.field, exceeded.value.value) == ("payload", 11)
    with pytest.raises(InvalidMessage, match="not a UUID"):
        from_arrow(pa.table({"payload": [b"a"], "id": ["nonsense"]}), STAMP, limits=LIMITS)


def test_nothing_and_something_else_are_refused() -> None:
    with pytest.raises(InvalidBatch, match="no messages"):
        from_arrow(pa.table({"payload": pa.array([], pa.binary())}), STAMP, limits=LIMITS)
    with pytest.raises(InvalidBatch, match="list"):
        from_arrow([b"a"], STAMP, limits=LIMITS)


@given(
    st.lists(st.tuples(st.binary(max_size=60), st.none() | st.binary(min_size=1, max_size=9)), min_size=1),
    st.integers(200, 400),
    st.integers(1, 5),
)
def test_a_table_is_split_into_batches_within_the_limits(
    messages: list[tuple[bytes, bytes | None]], bytes_max: int, messages_max: int
) -> None:
    limits = Limits(batch_bytes_max=bytes_max, batch_messages_max=messages_max)
    rows = [Row(payload, key, {"h": key.hex()} if key else None) for payload, key in messages]
    whole = from_rows(rows, STAMP, limits=LIMITS)
    made = from_arrow(whole.records, STAMP, limits=limits)
    assert [row for batch in made for row in rows_of(batch)] == rows_of(whole)
    for batch in made:
        assert len(batch) <= messages_max
        assert batch.nbytes <= bytes_max
        decode(encode(batch), limits=limits)


def test_a_large_table_needs_as_few_batches_as_its_size_asks_for() -> None:
    table = pa.table({"payload": pa.array([b"x" * 100] * 100_000)})
    made = from_arrow(table, STAMP, limits=LIMITS)
    assert sum(len(batch) for batch in made) == 100_000
    assert len(made) == 2
    assert np.mean([batch.nbytes for batch in made]) <= LIMITS.batch_bytes_max


def test_a_message_that_no_batch_can_hold_is_refused() -> None:
    with pytest.raises(LimitExceeded) as caught:
        from_arrow(pa.table({"payload": [b"a", b"x" * 500]}), STAMP, limits=Limits(batch_bytes_max=300))
    assert caught.value.field == "batch"
