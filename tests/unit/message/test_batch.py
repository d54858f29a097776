from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.message import SCHEMA, Batch, BatchMeta, Row, Traits, decode, encode, from_payloads, from_rows
from tests.unit.message.strategies import LIMITS, STAMP, batches, rows_of


def test_a_batch_of_payloads_is_plain() -> None:
    batch = from_payloads([b"a", b"b"], STAMP, limits=LIMITS)
    assert batch.traits == Traits(5, 5, None, None)
    assert batch.traits.plain


def test_traits_give_the_priority_range_the_first_expiry_and_the_last_delay() -> None:
    batch = from_rows(
        [
            Row(b"a", priority=2, expires_us=300, deliver_at_us=7),
            Row(b"b", priority=9, expires_us=200),
            Row(b"c", deliver_at_us=9),
        ],
        STAMP,
        limits=LIMITS,
    )
    assert batch.traits == Traits(2, 9, 200, 9)
    assert not batch.traits.plain


def test_a_slice_without_the_times_of_its_parent_has_none() -> None:
    batch = from_rows([Row(b"a", expires_us=1, deliver_at_us=2), Row(b"b")], STAMP, limits=LIMITS)
    assert batch.slice(1, 2).traits == Traits(5, 5, None, None)


@given(batches(), st.data())
def test_a_slice_has_its_own_messages_traits_and_bytes(batch: Batch, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(batch)))
    stop = data.draw(st.integers(start, len(batch)))
    part = batch.slice(start, stop)
    assert rows_of(part) == rows_of(batch)[start:stop]
    if part:
        rebuilt = Batch(part.records)
        assert part.traits == rebuilt.traits
        assert part.nbytes >= rebuilt.nbytes
        assert decode(encode(part), limits=LIMITS) == part
        assert decode(encode(part, compression="zstd"), limits=None) == part


@given(batches(), st.data())
def test_take_picks_messages_in_the_order_asked_for(batch: Batch, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=8))
    start = data.draw(st.integers(0, len(batch) - 1))
    part = batch.slice(start, len(batch))
    places = [place for place in places if place < len(part)]
    taken = part.take(np.array(places, dtype=np.int64))
    assert rows_of(taken) == [rows_of(part)[place] for place in places]
    assert taken.ids() == [part.ids()[place] for place in places]
    assert taken.records.schema.equals(SCHEMA)
    if places:
        assert decode(encode(taken), limits=LIMITS) == taken


def test_a_slice_shares_the_memory_of_its_parent() -> None:
    batch = from_payloads([b"x" * 100] * 100, STAMP, limits=LIMITS)
    assert batch.slice(10, 20).records.column(2).buffers()[2].address == batch.records.column(2).buffers()[2].address


def test_the_encoding_of_a_slice_holds_nothing_of_its_parent() -> None:
    rows = [
        Row(
            payload=b"payload-%03d" % i,
            key=b"key-%03d" % i,
            headers={f"name-{i:03}": f"value-{i:03}"},
            id=(b"id-%03d" % i).ljust(16),
        )
        for i in range(100)
    ]
    whole = from_rows(rows, STAMP, limits=LIMITS)
    encoded = encode(whole.slice(50, 52))
    for word in (b"payload", b"key", b"name", b"value", b"id"):
        assert b"%s-050" % word in encoded
        assert b"%s-051" % word in encoded
        assert b"%s-049" % word not in encoded
        assert b"%s-052" % word not in encoded
    assert len(encoded) < 2 * len(encode(whole)) / 10


def test_nbytes_of_a_slice_is_its_share() -> None:
    batch = from_payloads([b"x" * 1000] * 100, STAMP, limits=LIMITS)
    assert batch.slice(0, 10).nbytes == pytest.approx(batch.nbytes / 10, rel=0.01)


def test_a_batch_cannot_be_changed() -> None:
    batch = from_payloads([b"a"], STAMP, limits=LIMITS)
    with pytest.raises(AttributeError, match="immutable"):
        batch.meta = BatchMeta()
    with pytest.raises(AttributeError, match="immutable"):
        del batch.records
    with pytest.raises(AttributeError):
        batch.meta.given_ids = True  # type: ignore[misc]


def test_a_slice_that_runs_backwards_is_an_index_error() -> None:
    batch = from_payloads([b"a", b"b"], STAMP, limits=LIMITS)
    with pytest.raises(IndexError):
        batch.slice(2, 1)
    with pytest.raises(IndexError):
        batch.slice(-1, 1)


def test_batches_are_equal_when_messages_and_metadata_are() -> None:
    batch = from_payloads([b"a"], STAMP, limits=LIMITS)
    assert batch == from_payloads([b"a"], STAMP, limits=LIMITS)
    assert batch != from_payloads([b"b"], STAMP, limits=LIMITS)
    assert batch != batch.with_meta(BatchMeta(producer=b"p", sequence=1))
    assert batch != "a batch"


def test_a_batch_shows_no_content_in_logs() -> None:
    assert "secret" not in repr(from_payloads([b"secret"], STAMP, limits=LIMITS))


def test_an_empty_slice_is_plain_and_free_of_messages() -> None:
    batch = from_rows([Row(b"a", priority=9, expires_us=5)], STAMP, limits=LIMITS)
    empty = batch.slice(1, 1)
    assert len(empty) == 0
    assert empty.traits.plain
    assert empty.payloads() == empty.ids() == []
    nothing = batch.take(np.array([], dtype=np.int64))
    assert nothing.payloads() == nothing.ids() == []
