from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidArgument
from sealane.message import Limits, Row, Stamp, from_payloads, from_rows
from sealane.routing import partition_of, split_by_partition

LIMITS = Limits()
STAMP = Stamp(1_760_000_000_000_000, bytes(16))


def test_the_hash_is_the_one_that_stored_messages_were_placed_by() -> None:
    # These must never change: clients and stored messages rely on them.
    assert [partition_of(key, 1000) for key in (b"", b"a", b"customer-7", bytes(16))] == [138, 719, 432, 848]


keys = st.none() | st.binary(max_size=3)


@given(
    st.lists(st.tuples(keys, st.binary(min_size=16, max_size=16)), min_size=1, max_size=30),
    st.booleans(),
    st.integers(1, 7),
    st.data(),
)
def test_every_message_goes_where_its_key_or_given_id_says_and_the_rest_together(
    messages: list[tuple[bytes | None, bytes]], given_ids: bool, partitions: int, data: st.DataObject
) -> None:
    keyless = data.draw(st.integers(0, partitions - 1))
    skipped = data.draw(st.integers(0, len(messages) - 1))
    rows = [Row(b"", key=key, id=id_ if given_ids else None) for key, id_ in messages]
    batch = from_rows(rows, STAMP, limits=LIMITS).slice(skipped, len(rows))

    expected: dict[int, list[int]] = {}
    for place, row in enumerate(rows[skipped:]):
        named = row.key if row.key is not None else row.id
        target = keyless if named is None else partition_of(bytes(named), partitions)  # type: ignore[arg-type]
        expected.setdefault(0 if partitions == 1 else target, []).append(place)

    split = split_by_partition(batch, partitions, keyless)
    everything = np.arange(len(batch))
    assert {target: (everything if places is None else places).tolist() for target, places in split} == expected
    assert [target for target, _ in split] == sorted(expected)
    if len(expected) == 1:
        assert split[0][1] is None


def test_the_parts_of_a_split_are_the_batch_s_messages_in_order() -> None:
    batch = from_rows([Row(b"%d" % i, key=b"%d" % (i % 5)) for i in range(100)], STAMP, limits=LIMITS)
    parts = [(target, batch.take(places)) for target, places in split_by_partition(batch, 4, 0) if places is not None]
    assert sum(len(part) for _, part in parts) == 100
    for target, part in parts:
        numbers = [int(payload) for payload in part.payloads()]
        assert numbers == sorted(numbers)
        assert {partition_of(b"%d" % (number % 5), 4) for number in numbers} == {target}


def test_a_topic_of_one_partition_takes_every_batch_whole() -> None:
    batch = from_rows([Row(b"", key=b"a"), Row(b"", key=b"b")], STAMP, limits=LIMITS)
    assert split_by_partition(batch, 1, 0) == [(0, None)]


def test_messages_without_key_and_given_id_go_to_the_partition_the_caller_chose() -> None:
    assert split_by_partition(from_payloads([b"a", b"b"], STAMP, limits=LIMITS), 4, 3) == [(3, None)]


def test_keys_spread_over_the_partitions() -> None:
    counts = np.bincount([partition_of(b"customer-%d" % number, 8) for number in range(8000)], minlength=8)
    assert counts.min() > 800
    assert counts.max() < 1200


@pytest.mark.parametrize(("partitions", "keyless"), [(0, 0), (-1, 0), (2, 2), (2, -1)])
def test_partitions_that_do_not_exist_are_refused(partitions: int, keyless: int) -> None:
    with pytest.raises(InvalidArgument):
        split_by_partition(from_payloads([b"a"], STAMP, limits=LIMITS), partitions, keyless)


def test_there_is_no_partition_of_none() -> None:
    with pytest.raises(InvalidArgument):
        partition_of(b"a", 0)
