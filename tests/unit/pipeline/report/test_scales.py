"""Axes name round values, and everything is between their ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.report.figures import POINTS_SHOWN, Span
from sealane.pipeline.report.scales import DATES, dates_of, scale_from_zero, scale_of_latencies

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

amounts = st.lists(st.floats(min_value=0, max_value=1e12, allow_subnormal=False), max_size=20)


@given(amounts)
def test_a_scale_from_zero_holds_every_value_between_few_round_ticks(values: list[float]) -> None:
    scale = scale_from_zero(value for value in values if value > 1e-9)
    assert (scale.low, 2 <= len(scale.ticks) <= 6) == (0, True)
    assert all(value <= scale.high * (1 + 1e-6) for value in values if value > 1e-9)
    assert [scale.place(tick) for tick in (scale.low, scale.high)] == [0, 1]


@given(amounts)
def test_a_scale_of_latencies_puts_larger_ones_higher(values: list[float]) -> None:
    known = sorted(value for value in values if value > 1e-6)
    scale = scale_of_latencies(known)
    places = [scale.place(value) for value in known]
    assert places == sorted(places)
    assert 2 <= len(scale.ticks) <= 7


def test_ticks_are_what_a_person_would_choose() -> None:
    assert scale_from_zero([870]).ticks == (0, 200, 400, 600, 800, 1000)
    assert scale_from_zero([]).ticks == (0, 1)
    latencies = scale_of_latencies([3.0, 40.0, 2_500.0])
    assert (latencies.is_logarithmic, latencies.ticks) == (True, (1, 10, 100, 1000, 10_000))
    assert not scale_of_latencies([10.0, 40.0]).is_logarithmic


@pytest.mark.parametrize(
    ("length", "step_seconds", "names"),
    [
        (timedelta(seconds=50), 1, ["12:00:00", "12:00:15", "12:00:30"]),
        (timedelta(hours=2), 60, ["12:00", "12:15", "12:30"]),
        (timedelta(days=2), 600, ["12:00", "18:00", "3 Mar"]),
        (timedelta(days=30), 7_200, ["9 Mar", "16 Mar", "23 Mar"]),
        (timedelta(days=900), 604_800, ["8 Jun 2026"]),
    ],
)
def test_a_time_axis_names_whole_hours_and_days(length: timedelta, step_seconds: int, names: list[str]) -> None:
    span = Span.between(NOON, NOON + length)
    ticks = dates_of(span)
    assert span.step_seconds == step_seconds
    assert [tick.text for tick in ticks][: len(names)] == names
    assert len(ticks) <= DATES + 1


@given(st.integers(min_value=0, max_value=2 * 10**9), st.integers(min_value=0, max_value=10**9))
def test_a_span_has_no_more_points_than_are_shown_and_none_is_outside(begin: int, seconds: int) -> None:
    since = datetime.fromtimestamp(begin, UTC)
    until = since + timedelta(seconds=seconds)
    span = Span.between(since, until)
    assert 1 <= span.steps <= POINTS_SHOWN
    assert span.since <= since
    assert 0 <= span.place(since) <= span.place(until) <= 1
    assert span.time(span.steps) >= until
