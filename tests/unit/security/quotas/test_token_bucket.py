"""A token bucket gives away so much a second, and a burst, whoever asks when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.security.quotas.token_bucket import TokenBucket

RATE, BURST = 10.0, 20.0
TOLERANCE = 1e-6

amounts = st.floats(0.1, BURST)
pauses = st.floats(0, 5)
asking = st.lists(st.tuples(pauses, amounts), max_size=60)


def taken(asked: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """When what was taken, of those who ask after a pause each."""
    bucket = TokenBucket(RATE, BURST, now=0)
    now, found = 0.0, []
    for pause, amount in asked:
        now += pause
        if bucket.take(amount, now) == 0:
            found.append((now, amount))
    return found


@given(asking)
def test_no_stretch_of_time_gets_more_than_its_seconds_worth_and_a_burst(asked: list[tuple[float, float]]) -> None:
    given_away = taken(asked)
    for first in range(len(given_away)):
        total = 0.0
        for now, amount in given_away[first:]:
            total += amount
            assert total <= RATE * (now - given_away[first][0]) + BURST + TOLERANCE


@given(asking, amounts)
def test_whoever_waits_as_long_as_they_were_told_is_let_through(asked: list[tuple[float, float]], last: float) -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    now = 0.0
    for pause, amount in [*asked, (0.0, last)]:
        now += pause
        wait = bucket.take(amount, now)
        assert 0 <= wait <= BURST / RATE + TOLERANCE
        if wait:
            now += wait + TOLERANCE
            assert bucket.take(amount, now) == 0


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 100)), max_size=60))
def test_a_clock_that_goes_back_gives_nobody_more(asked: list[tuple[float, float]]) -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    now = latest = total = largest = 0.0
    for step, amount in asked:
        now += step
        latest = max(latest, now)
        if bucket.take(amount, now) == 0:
            total += amount
            largest = max(largest, amount)
    assert total <= RATE * latest + BURST + max(0.0, largest - BURST) + TOLERANCE


def test_a_refusal_takes_nothing() -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    assert bucket.take(15, now=0) == 0
    assert [bucket.take(15, now=0), bucket.take(15, now=0)] == [1.0, 1.0]
    assert bucket.level(now=0) == 5


def test_more_than_the_burst_goes_through_a_full_bucket_and_leaves_a_debt() -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    assert bucket.take(100, now=0) == 0
    assert bucket.level(now=0) == -80
    assert bucket.take(1, now=0) == pytest.approx(8.1)
    assert bucket.take(100, now=5) == pytest.approx(5.0)
    assert bucket.take(100, now=10) == 0


def test_what_costs_nothing_passes_a_bucket_in_debt() -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    bucket.take(1_000, now=0)
    assert bucket.take(0, now=0) == 0


def test_a_change_of_the_rate_keeps_what_was_used() -> None:
    bucket = TokenBucket(RATE, BURST, now=0)
    bucket.take(BURST, now=0)
    bucket.change(100, 200, now=0)
    assert bucket.take(50, now=0) == pytest.approx(0.5)
    bucket.change(1, 2, now=10)
    assert bucket.level(now=10) == 2
