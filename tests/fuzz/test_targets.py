"""Every target for a few seconds, and everything that was ever kept for it."""

from __future__ import annotations

import os
import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz import keeping
from tests.fuzz.__main__ import main
from tests.fuzz.distilling import KEPT_BYTES_MAX, distilled
from tests.fuzz.mutation import INTERESTING
from tests.fuzz.running import MEMORY_BYTES_MAX, Finding, quiet, run, try_one
from tests.fuzz.target import Target
from tests.fuzz.targets import NAMES, load

SPOILED_SECONDS, EXPLORED_SECONDS = 6.0, 3.0
"""About ten seconds for each target: inputs that are spoiled, and inputs of hypothesis."""
INPUTS_MIN = 60
"""On a slow machine too, so that no target passes by doing nothing."""
ROUND_EXAMPLES = 40
"""Hypothesis has no clock: it is asked for a few examples at a time."""

SEED = 1 if os.environ.get("CI", "").lower() in {"1", "true"} else int(time.time())
"""The same inputs on every run in CI; a developer's runs go on exploring."""

Edit = tuple[str, int, int, bytes]
edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "write", "cut", "splice", "insert"]),
        st.integers(0, 2_000),
        st.integers(0, 2_000),
        st.sampled_from(INTERESTING),
    ),
    max_size=6,
)


@pytest.fixture(params=NAMES)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with warnings.catch_warnings():
        # Libraries warn of what they will refuse one day; a stranger may send it today.
        warnings.simplefilter("ignore")
        yield load(request.param)


def test_every_seed_is_taken_and_everything_kept_is_sound(target: Target) -> None:
    assert target.seeds
    for data in target.seeds:
        assert try_one(target, data), f"a seed is refused: {data.hex()}"
    for data in keeping.kept(target.name):
        try_one(target, data)


@pytest.mark.slow
def test_spoiled_inputs_are_taken_or_refused_and_nothing_else(target: Target) -> None:
    tally = run(target, seed=SEED, seconds=SPOILED_SECONDS, inputs_min=INPUTS_MIN)
    assert tally.tried >= INPUTS_MIN
    # Whatever it is that spoils them, some get past the first check, and some do not.
    assert 0 < tally.taken < tally.tried
    assert tally.grown_bytes < MEMORY_BYTES_MAX


@pytest.mark.slow
def test_inputs_of_hypothesis_are_taken_or_refused_and_nothing_else(target: Target) -> None:
    known = st.sampled_from([*target.seeds, *keeping.kept(target.name)])
    tried = 0

    def explored(data: bytes, other: bytes, changes: list[Edit], number: int, foreign: bytes) -> None:
        nonlocal tried
        changed = edited(data, other, changes)
        for each in (changed, target.spoil(changed, random.Random(number)), foreign):
            try_one(target, each)
            tried += 1

    explore = settings(max_examples=ROUND_EXAMPLES, suppress_health_check=list(HealthCheck), database=None)(
        given(known, known, edits, st.integers(0, 2**32), st.binary(max_size=400))(explored)
    )
    stop = time.monotonic() + EXPLORED_SECONDS
    rounds = 0
    with quiet():
        while rounds == 0 or time.monotonic() < stop:
            seed(SEED + rounds)(explore)()
            rounds += 1
    assert tried >= INPUTS_MIN


def edited(data: bytes, other: bytes, changes: list[Edit]) -> bytes:
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


def test_the_same_seed_makes_the_same_inputs(target: Target) -> None:
    one, other = random.Random(5), random.Random(5)
    data = target.seeds[-1]
    assert [target.spoil(data, one) for _ in range(50)] == [target.spoil(data, other) for _ in range(50)]


def test_what_is_kept_is_of_a_target_and_small() -> None:
    for folder in (keeping.CORPUS, keeping.FOUND):
        assert {path.name for path in folder.iterdir()} <= set(NAMES)
    for name in NAMES:
        assert sum(map(len, keeping.kept(name))) <= 2 * KEPT_BYTES_MAX, f"what is kept of {name} is too much"


# --- the tools themselves -------------------------------------------------------------------------------------------


def refuses_long_ones(data: bytes) -> bool:
    if len(data) == 7:
        raise KeyError("a bug")
    return len(data) < 7


PLANTED = Target("planted", (b"sixsix",), refuses_long_ones)


def test_a_planted_bug_is_found_and_told_with_its_input() -> None:
    with pytest.raises(Finding, match="KeyError") as found:
        run(PLANTED, seed=1, seconds=60)
    assert len(found.value.data) == 7
    assert found.value.data.hex() in str(found.value)


def test_the_inputs_that_are_worth_keeping_are_few_and_reach_as_much() -> None:
    target = load("positions")
    inputs = [b"0:1", b"0:1", b"0:2", b"0:12345", b"nonsense", b"more nonsense", b"0:9-3"]
    kept = distilled(target, inputs)
    assert set(kept) <= set(inputs)
    assert len(kept) < len(set(inputs))
    assert distilled(target, inputs, kept) == []


def test_it_runs_by_itself_and_keeps_a_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.fuzz.sessions.CORPUS", tmp_path / "corpus")
    monkeypatch.setattr("tests.fuzz.__main__.FOUND", tmp_path / "found")
    assert main(["--only", "tickets", "--minutes", "0.005", "--seed", "3", "--plain"]) == 0
    assert "tickets: " in capsys.readouterr().out
    assert main(["--only", "tickets", "--keep", b"x".hex()]) == 0
    [kept] = (tmp_path / "found" / "tickets").iterdir()
    assert kept.read_bytes() == b"x"
