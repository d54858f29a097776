from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz_batch import run
from tests.fuzz.mutation import INTERESTING, SEEDS, check, mutate

edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "write", "cut", "splice", "insert"]),
        st.integers(0, 2000),
        st.integers(0, 2000),
        st.sampled_from(INTERESTING),
    ),
    min_size=1,
    max_size=6,
)


def edited(data: bytes, other: bytes, changes: list[tuple[str, int, int, bytes]]) -> bytes:
    changed = bytearray(data)
    for kind, place, number, value in changes:
        at = place % (len(changed) + 1)
        if kind == "flip" and at < len(changed):
            changed[at] ^= 1 << number % 8
        elif kind == "write":
            changed[at : at + len(value)] = value
        elif kind == "cut":
            del changed[at : at + number]
        elif kind == "splice":
            changed[at : at + number] = other[at : at + number]
        elif kind == "insert":
            changed[at:at] = value
    return bytes(changed)


@settings(max_examples=1500, derandomize=True)
@given(st.sampled_from(SEEDS), st.sampled_from(SEEDS), edits)
def test_a_spoiled_encoding_is_a_sound_batch_or_a_refusal_and_nothing_else(
    data: bytes, other: bytes, changes: list[tuple[str, int, int, bytes]]
) -> None:
    check(edited(data, other, changes))


@settings(max_examples=500, derandomize=True)
@given(st.binary(max_size=400))
def test_bytes_that_never_were_a_batch_are_refused(data: bytes) -> None:
    check(data)


def test_every_seed_is_a_batch() -> None:
    for seed in SEEDS:
        assert check(seed) is not None


def test_a_short_fuzz_run_finds_nothing_and_gets_past_the_framing() -> None:
    tried, accepted = run(seed=1, iterations=3000)
    assert tried == 3000
    assert 100 < accepted < 2900


def test_the_same_seed_makes_the_same_mutations() -> None:
    one, other = random.Random(5), random.Random(5)
    assert [mutate(SEEDS[2], one) for _ in range(50)] == [mutate(SEEDS[2], other) for _ in range(50)]


def test_the_fuzz_target_runs_by_itself() -> None:
    target = Path(__file__).with_name("fuzz_batch.py")
    done = subprocess.run(
        [sys.executable, str(target), "--iterations", "200", "--seed", "3"], capture_output=True, text=True, check=True
    )
    assert "200 mutations" in done.stdout
