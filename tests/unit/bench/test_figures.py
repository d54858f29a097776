"""Figures, and the distributions that they keep."""

from __future__ import annotations

import random

import pytest

from bench.figures import KEPT_PERCENTS, Figure, at_percent, number, percentile, thinned


@pytest.mark.parametrize(
    ("value", "less_is_better", "reached"),
    [(100.0, False, True), (99.9, False, False), (100.0, True, True), (100.1, True, False)],
)
def test_a_reach_is_a_floor_or_a_ceiling(value: float, less_is_better: bool, reached: bool) -> None:
    figure = Figure("it", "x", value, (value,), 100.0, less_is_better)
    assert figure.reached is reached


def test_a_figure_without_a_reach_is_neither_reached_nor_short() -> None:
    assert Figure("it", "x", 1.0, (1.0,)).reached is None


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 50), (50.5, 51), (99, 99), (99.9, 100), (100, 100)])
def test_a_percentile_is_what_so_many_per_cent_do_not_exceed(percent: float, value: int) -> None:
    assert percentile(range(1, 101), percent) == value


def test_a_thinned_distribution_keeps_its_percentiles_and_its_end() -> None:
    values = [random.Random(7).lognormvariate(0, 1) for _ in range(1)] + [index / 10 for index in range(50_000)]
    kept = thinned(values)
    assert len(kept) == len(KEPT_PERCENTS) < 200
    ordered = sorted(values)
    for percent in (50, 90, 99, 99.9, 100):
        assert at_percent(kept, percent) == pytest.approx(percentile(ordered, percent), rel=1e-3)
    assert list(kept) == sorted(kept)


def test_nothing_thinned_is_nothing() -> None:
    assert thinned([]) == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567.8, "1,234,568"), (99.96, "100.0"), (12.34, "12.3"), (0.456, "0.46"), (-250.0, "-250")],
)
def test_numbers_are_as_long_as_they_matter(value: float, text: str) -> None:
    assert number(value) == text
