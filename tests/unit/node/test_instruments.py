"""Histograms count by size and weight; rates forget."""

from __future__ import annotations

import pytest

from sealane.node.instruments import RATE_SECONDS, Histogram, Rate


def test_a_value_counts_at_the_first_bound_that_it_does_not_exceed() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)

    assert histogram.counts == [2, 2, 1]
    assert histogram.sum == 14.0
    assert histogram.count == 5


def test_one_value_may_stand_for_a_whole_batch() -> None:
    histogram = Histogram((1.0,))
    histogram.observe(0.5, 1_000)

    assert (histogram.counts, histogram.sum) == ([1_000, 0], 500.0)


def test_a_quantile_is_the_bound_that_so_many_do_not_exceed() -> None:
    histogram = Histogram((1.0, 2.0))
    assert histogram.quantile(0.5) is None
    histogram.observe(0.5, 90)
    histogram.observe(1.5, 9)
    histogram.observe(5.0, 1)

    assert [histogram.quantile(fraction) for fraction in (0.5, 0.9, 0.95, 1.0)] == [1.0, 1.0, 2.0, float("inf")]


def test_a_steady_stream_has_its_rate_and_an_end_of_it_is_forgotten() -> None:
    rate = Rate()
    for second in range(1, 101):
        rate.add(50, float(second))

    assert rate.per_second(100.0) == pytest.approx(50, rel=0.06)
    assert rate.per_second(100.0 + 10 * RATE_SECONDS) < 0.01


def test_nothing_has_no_rate() -> None:
    assert Rate().per_second(1e6) == 0
