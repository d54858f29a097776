"""Messages that come again are found by runs of ids as they would be one by one, and are forgotten after their time."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.clean.repeats import RUN, Runs, find_repeats, runs_of
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.steps.seen_ids import TOGETHER, SeenIds

Message = tuple[str, int]
"""Its topic and its id."""


def runs(messages: list[Message], place: int = 0) -> Runs:
    """Of messages with offsets from 0 on, as the tasks of several topics tell them."""
    found = [np.empty(0, RUN)]
    start = 0
    for stop in range(1, len(messages) + 1):
        if stop == len(messages) or messages[stop][0] != messages[start][0]:
            ids = b"".join(id.to_bytes(16, "big") for _, id in messages[start:stop])
            made = runs_of(messages[start][0], np.frombuffer(ids, np.uint8).reshape(-1, 16), np.arange(start, stop))
            made["place"] = place
            found.append(made)
            start = stop
    return np.concatenate(found)


edges = st.sampled_from([0, 2**64 - 2, 2**64, 2**127, 2**128 - 8])
batches = st.builds(
    lambda topic, edge, first, count: [(topic, edge + first + number) for number in range(count)],
    st.sampled_from(["shop/orders", "shop/notes"]),
    edges,
    st.integers(0, 4),
    st.integers(1, 4),
)
micro_batches = st.lists(st.lists(batches, max_size=5).map(lambda some: [*chain(*some)]), max_size=5)


@given(micro_batches)
def test_each_message_is_new_once(some: list[list[Message]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        seen, known = SeenIds(Lake(Path(directory))), set[Message]()
        for number, messages in enumerate(some):
            expected = []
            for offset, message in enumerate(messages):
                if message in known:
                    expected.append(offset)
                known.add(message)
            found, kept = find_repeats(runs(messages), seen.before(number, 0))
            assert sorted(found.offsets.tolist()) == expected
            assert kept["count"].sum() == len(set(messages))
            seen.keep(kept, number, now_us=number)


def test_of_two_in_one_micro_batch_the_first_is_kept() -> None:
    early, late = runs([("shop/orders", 5)], place=0), runs([("shop/orders", 5)], place=1)
    found, _ = find_repeats(np.concatenate([late, early]), ())
    assert found.places.tolist() == [1]


def test_a_batch_is_one_run_however_long() -> None:
    assert len(runs([("shop/orders", id) for id in range(10**6, 10**6 + 5000)])) == 1


def test_ids_that_end_with_zeros_are_ids_too() -> None:
    found, _ = find_repeats(runs([("shop/orders", 256), ("shop/orders", 1), ("shop/orders", 256)]), ())
    assert found.offsets.tolist() == [2]


def left(lake: Path, number: int, id: int, now_us: int) -> SeenIds:
    seen = SeenIds(Lake(lake))
    _, kept = find_repeats(runs([("shop/orders", id)]), seen.before(number, 0))
    seen.keep(kept, number, now_us)
    return seen


def test_what_is_older_is_forgotten(tmp_path: Path) -> None:
    left(tmp_path, 0, 7, now_us=100)
    seen = left(tmp_path, 1, 8, now_us=200)
    again = runs([("shop/orders", 7), ("shop/orders", 8)])
    assert find_repeats(again, seen.before(2, 100))[0].offsets.tolist() == [0, 1]
    assert find_repeats(again, seen.before(2, 101))[0].offsets.tolist() == [1]
    before = seen.size_bytes()
    seen.tidy(2, oldest_us=101)
    assert 0 < seen.size_bytes() < before


def test_a_micro_batch_that_is_done_again_does_not_see_itself(tmp_path: Path) -> None:
    seen = left(tmp_path, 3, 7, now_us=1)
    assert find_repeats(runs([("shop/orders", 7)]), seen.before(3, 0))[0].offsets.tolist() == []
    assert find_repeats(runs([("shop/orders", 7)]), seen.before(4, 0))[0].offsets.tolist() == [0]


@pytest.mark.parametrize("killed", [False, True])
def test_many_files_become_few_and_nothing_is_lost(
    tmp_path: Path, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, seen = TOGETHER**2 + 3, SeenIds(Lake(tmp_path))
    for number in range(count):
        # What comes again is left again, so that the files before need not be read for that.
        _, kept = find_repeats(runs([("shop/orders", 10 * (number // 2))]), ())
        seen.keep(kept, number, now_us=number)
    if killed:
        # Everything is put together, and nothing of what it was made of is taken away.
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", lambda self, missing_ok=False: None)
            seen.tidy(count, 0)
        assert find_repeats(runs([("shop/orders", 0)]), seen.before(count, 0))[0].offsets.tolist() == [0]
    seen.tidy(count, 0)
    assert len(list((tmp_path / "state" / "ids").iterdir())) == 4
    ids = [10 * number for number in range((count + 1) // 2)]
    found, _ = find_repeats(runs([("shop/orders", id) for id in [*ids, 5]]), seen.before(count, 0))
    assert found.offsets.tolist() == list(range(len(ids)))
