"""The sets that state is made of: offsets, settled, due, attempts, ids."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from sealane.delivery.attempts import Attempts
from sealane.delivery.backlog import Priorities, PriorityBacklog
from sealane.delivery.due import DueSet
from sealane.delivery.dying import DeadGroup, Dying
from sealane.delivery.id_window import IdWindow, split_ids
from sealane.delivery.leases import Lease, LeaseTable
from sealane.delivery.offsets import from_array, pack, runs, span, take_first, to_array, unpack
from sealane.delivery.settled import SettledSet
from tests.unit.delivery.small_queue import MS, bitmap, listed

offsets = st.sets(st.integers(0, 300))
FAR = 2**40


# --- offsets ----------------------------------------------------------------------------------------------------------


@given(offsets)
def test_packing_keeps_the_set(values: set[int]) -> None:
    assert set(unpack(pack(BitMap64(values)))) == values


def test_a_run_packs_into_two_numbers_and_nothing_into_an_empty_run() -> None:
    assert pack(span(FAR, FAR + 10**9)) == (FAR, FAR + 10**9)
    assert pack(BitMap64()) == (0, 0)
    assert not unpack((0, 0))


def test_packing_a_set_with_gaps_takes_bytes_by_the_gap_not_by_the_message() -> None:
    gappy = span(0, 10_000_000)
    gappy -= BitMap64(range(0, 10_000_000, 100_000))
    packed = pack(gappy)
    assert isinstance(packed, bytes)
    assert len(packed) < 4_000


@given(offsets, st.integers(0, 310))
def test_taking_the_first_splits_the_set_at_that_count(values: set[int], count: int) -> None:
    rest = BitMap64(values)
    taken = take_first(rest, count)
    assert listed(taken) == sorted(values)[:count]
    assert listed(rest) == sorted(values)[count:]


def test_what_is_taken_shares_nothing_with_what_is_left() -> None:
    source = bitmap(1, 2, 3)
    taken = take_first(source, 9)
    source |= bitmap(7)
    assert listed(taken) == [1, 2, 3]


@given(offsets)
def test_runs_cover_the_set_in_order(values: set[int]) -> None:
    found = runs(BitMap64(values))
    assert [offset for start, stop in found for offset in range(start, stop)] == sorted(values)
    assert all(stop < start for (_, stop), (start, _) in itertools.pairwise(found))


@given(offsets)
def test_arrays_keep_the_set(values: set[int]) -> None:
    array = np.array(sorted(FAR + value for value in values), dtype=np.uint64)
    assert set(to_array(from_array(array)).tolist()) == set(array.tolist())


# --- settled ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 20), st.lists(offsets, max_size=8))
def test_the_floor_moves_over_everything_settled_and_nothing_else(floor: int, added: list[set[int]]) -> None:
    settled = SettledSet(floor)
    expected = set(range(floor))
    for values in added:
        settled.add(BitMap64(values))
        expected |= values
        assert {offset for offset in range(320) if offset in settled} == expected
        assert settled.floor == min(set(range(400)) - expected)
        assert not settled.above or settled.above.min() > settled.floor
        assert settled.unsettled_count(320) == 320 - len(expected)
        assert set(settled.without(10, 300)) == set(range(10, 300)) - expected


def test_the_last_gap_to_close_moves_the_floor_over_millions_at_once() -> None:
    settled = SettledSet()
    settled.add(span(1, 10_000_000))
    assert settled.floor == 0
    settled.add(bitmap(0))
    assert settled.floor == 10_000_000
    assert not settled.above


def test_settling_shares_nothing_with_the_set_that_was_given() -> None:
    settled = SettledSet()
    given_set = bitmap(3, 5)
    settled.add(given_set)
    given_set |= bitmap(9)
    settled.add(bitmap(7))
    assert 9 not in settled
    assert listed(given_set) == [3, 5, 9]


# --- due --------------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 9_000), offsets.map(frozenset)),
            st.tuples(st.just("discard"), st.just(0), offsets.map(frozenset)),
            st.tuples(st.just("pop"), st.integers(0, 9_000), st.just(frozenset[int]())),
        ),
        max_size=30,
    )
)
def test_a_due_set_agrees_with_a_dictionary(commands: list[tuple[str, int, frozenset[int]]]) -> None:
    due = DueSet()
    expected: dict[int, int] = {}
    for command, moment_us, values in commands:
        if command == "add":
            due.add(moment_us, BitMap64(values))
            expected.update(dict.fromkeys(values, -(-moment_us // MS)))
        elif command == "discard":
            due.discard(BitMap64(values))
            expected = {offset: bucket for offset, bucket in expected.items() if offset not in values}
        else:
            popped = {offset for offset, bucket in expected.items() if bucket <= moment_us // MS}
            assert set(due.pop_due(moment_us)) == popped
            expected = {offset: bucket for offset, bucket in expected.items() if offset not in popped}
        assert set(due.members) == set(expected)
        assert due.next_us() == (min(expected.values()) * MS if expected else None)
        assert {offset: us // MS for us, group in due.items() for offset in group} == expected


def test_a_discarded_offset_that_is_added_again_is_due_at_its_new_moment_only() -> None:
    due = DueSet()
    due.add(1 * MS, bitmap(1, 2))
    due.discard(bitmap(1))
    due.add(9 * MS, bitmap(1))
    assert listed(due.pop_due(5 * MS)) == [2]
    assert listed(due.pop_due(9 * MS)) == [1]


def test_a_bucket_of_nothing_but_discarded_offsets_leaves_no_trace() -> None:
    due = DueSet()
    due.add(1 * MS, bitmap(1, 2))
    due.discard(bitmap(1, 2))
    assert due.next_us() is None
    assert not due._buckets
    assert not due._stale


def test_a_due_set_shares_nothing_with_the_set_that_was_given() -> None:
    due = DueSet()
    given_set = bitmap(1)
    due.add(MS, given_set)
    due.add(MS, bitmap(2))
    assert listed(given_set) == [1]


# --- attempts ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), offsets), max_size=12))
def test_attempts_agree_with_counting_one_by_one(commands: list[tuple[bool, set[int]]]) -> None:
    attempts = Attempts()
    expected: dict[int, int] = {}
    for fails, values in commands:
        if fails:
            attempts.count_failure(BitMap64(values))
            expected.update({offset: expected.get(offset, 0) + 1 for offset in values})
        else:
            attempts.forget(BitMap64(values))
            expected = {offset: count for offset, count in expected.items() if offset not in values}
        everything = BitMap64(range(301))
        assert {offset: count for offset in everything if (count := attempts.failures(offset))} == expected
        grouped = {offset: count for count, group in attempts.by_failures(everything) for offset in group}
        assert grouped == {offset: expected.get(offset, 0) for offset in range(301)}
        for count in (1, 2, 3):
            assert set(attempts.failed_at_least(count, everything)) == {o for o, n in expected.items() if n >= count}
        assert all(attempts.levels)


def test_counting_failures_shares_nothing_with_the_set_that_was_given() -> None:
    attempts = Attempts()
    failing = bitmap(1)
    attempts.count_failure(failing)
    attempts.count_failure(bitmap(2))
    assert listed(failing) == [1]


# --- the backlog, leases and the dying --------------------------------------------------------------------------------


def test_a_set_put_back_twice_is_ready_once() -> None:
    backlog = PriorityBacklog(Priorities())
    backlog.put_back(bitmap(1, 2))
    backlog.put_back(bitmap(2, 3))
    assert backlog.ready_count() == 3
    assert [listed(these) for these in backlog.take("ann", 9)] == [[1, 2, 3]]
    assert not backlog.has_ready("ann")


def test_a_backlog_shares_nothing_with_the_set_that_was_given() -> None:
    backlog = PriorityBacklog(Priorities())
    given_set = bitmap(1)
    backlog.put_back(given_set)
    backlog.put_back(bitmap(2))
    assert listed(given_set) == [1]


def test_ending_a_hold_touches_no_other_lease() -> None:
    leases = LeaseTable()
    leases.add(Lease(1, "ann", bitmap(1, 2), 10, bound=True))
    leases.add(Lease(2, "bob", bitmap(3, 4), 20, bound=True))
    leases.remove(1, bitmap(2))
    leases.revoke(bitmap(1, 4))
    leases.check()
    assert list(leases.by_id) == [2]
    assert listed(leases.outstanding) == [3]


def test_the_dead_are_buried_from_whichever_groups_hold_them() -> None:
    dying = Dying()
    for values in ((1, 2), (3,), (4, 5)):
        dying.add(DeadGroup(bitmap(*values), "nack", None))
    untouched = dying[2]
    dying.bury(bitmap(2, 3, 99))
    assert [listed(group.offsets) for group in dying] == [[1], [4, 5]]
    assert dying[1] is untouched
    assert listed(dying.members) == [1, 4, 5]


# --- the id window ----------------------------------------------------------------------------------------------------


def identities(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in numbers]


def test_an_id_is_remembered_for_the_whole_window_wherever_in_a_slice_it_came() -> None:
    rng = random.Random(7)
    window = IdWindow(window_us=1_000, ids_max=1_000_000)
    came: dict[int, int] = {}
    now_us = 0
    for number in range(2_000):
        now_us += rng.randrange(0, 40)
        window.add(identities(number), number, now_us)
        came[number] = now_us
        for recent in range(max(0, number - 60), number + 1):
            if now_us - came[recent] <= 1_000:
                assert window.find(identities(recent)[0]) == recent
    assert len(window) < 150


def test_an_id_is_forgotten_soon_after_its_window() -> None:
    window = IdWindow(window_us=1_000, ids_max=100)
    window.add(identities(1), 0, 0)
    window.add(identities(2), 1, 1_099)
    assert window.find(identities(1)[0]) == 0
    window.add(identities(3), 2, 1_100)
    assert window.find(identities(1)[0]) is None
    assert len(window) == 2


def test_the_window_never_holds_more_ids_than_it_may() -> None:
    window = IdWindow(window_us=10**9, ids_max=100)
    for number in range(1_000):
        window.add(identities(number), number, number)
        assert len(window) <= 100
        newest = range(max(0, number - 80), number + 1)
        assert all(window.find(identities(recent)[0]) == recent for recent in newest)


def test_exactly_as_many_ids_as_may_be_are_kept() -> None:
    window = IdWindow(window_us=10**9, ids_max=100)
    for start in range(0, 100, 10):
        window.add(identities(*range(start, start + 10)), start, 0)
    assert len(window) == 100
    assert window.find(identities(0)[0]) == 0
    window.add(identities(100), 100, 0)
    assert window.find(identities(0)[0]) is None
    assert window.find(identities(99)[0]) == 99


def test_an_id_that_comes_again_counts_once() -> None:
    window = IdWindow(window_us=10**9, ids_max=100)
    window.add(identities(1, 1), 0, 0)
    window.add(identities(1), 5, 0)
    assert len(window) == 1


def test_a_clock_that_goes_back_makes_the_window_longer_never_shorter() -> None:
    window = IdWindow(window_us=1_000, ids_max=100)
    window.add(identities(1), 0, 5_000)
    window.add(identities(2), 1, 1_000)
    window.add(identities(3), 2, 5_900)
    assert window.find(identities(1)[0]) == 0
    assert window.find(identities(2)[0]) == 1


def test_a_dumped_window_loads_as_it_was() -> None:
    window = IdWindow(window_us=100, ids_max=1_000)
    for number in range(50):
        window.add(identities(number, number + 1_000), number * 2, number * 5)
    copy = IdWindow(window_us=100, ids_max=1_000)
    copy.load(window.dump())
    assert copy.dump() == window.dump()
    assert len(copy) == len(window)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_joined_ids_split_into_sixteen_bytes_each(count: int) -> None:
    given_ids = identities(*range(count))
    assert split_ids(b"".join(given_ids)) == given_ids
