"""The baseline of a series: robust, seasonal, by the past alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.pipeline.anomalies.baseline import HISTORY_DAYS_FEWEST, LEVEL_DAYS, fit
from sealane.pipeline.anomalies.detecting import Finding, detect
from sealane.pipeline.anomalies.measures import BASELINED, BINS_A_DAY, DEPTH, ERRORS, LATENCY, RATE, Floats, Measure
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.scoring import band, score

MONDAY = 20_514 * BINS_A_DAY
DAYS = 10
TODAY = MONDAY + (DAYS - 1) * BINS_A_DAY
NOON = TODAY + BINS_A_DAY // 2
STOP = TODAY + BINS_A_DAY


def season(level: float, days: int = DAYS, seed: int = 0) -> Floats:
    """More by day than by night, with the noise of counts."""
    hours = np.arange(days * BINS_A_DAY) / 12
    return np.random.default_rng(seed).poisson(level * (1.2 + np.sin(hours / 24 * 2 * np.pi))).astype(float)


def changed(values: Floats, begin: int, stop: int, factor: float, more: float = 0.0) -> Floats:
    found = values.copy()
    found[begin - MONDAY : stop - MONDAY] = np.round(found[begin - MONDAY : stop - MONDAY] * factor + more)
    return found


def found(values: Floats, measure: Measure = RATE, begin: int = TODAY, trials: Floats | None = None) -> list[Finding]:
    findings = detect(Observed(MONDAY, values, trials), measure, begin, MONDAY + len(values))
    return [each for each in findings if each.kind == "baseline"]


@given(
    measure=st.sampled_from(BASELINED),
    values=st.lists(st.floats(0, 1e9), min_size=1, max_size=20),
)
def test_a_scale_and_its_inverse_give_the_value_again(measure: Measure, values: list[float]) -> None:
    array = np.array(values)
    assert measure.unscaled(measure.scaled(array)) == pytest.approx(array, rel=1e-6, abs=1e-6)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), factor=st.floats(0, 100), begin=st.integers(0, BINS_A_DAY - 1))
def test_what_happens_later_changes_no_score(seed: int, factor: float, begin: int) -> None:
    before = season(20, seed=seed)
    after = changed(before, TODAY + begin, STOP, factor, more=3)
    one = score(Observed(MONDAY, before), RATE, TODAY, STOP)
    other = score(Observed(MONDAY, after), RATE, TODAY, STOP)
    assert np.array_equal(one.scores[:, :begin], other.scores[:, :begin], equal_nan=True)
    assert np.array_equal(one.low[0], other.low[0], equal_nan=True)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    places=st.lists(st.tuples(st.integers(0, 500), st.integers(1, 40), st.sampled_from([0.0, 4.0])), max_size=3),
    cuts=st.lists(st.integers(1, 2 * BINS_A_DAY - 1), max_size=4, unique=True),
)
def test_however_a_span_is_cut_the_same_anomalies_begin_in_it(
    seed: int, places: list[tuple[int, int, float]], cuts: list[int]
) -> None:
    values, begin = season(20, seed=seed), STOP - 2 * BINS_A_DAY
    for place, length, factor in places:
        values = changed(values, begin + place, min(begin + place + length, STOP), factor)
    series = Observed(MONDAY, values)
    whole = detect(series, RATE, begin, STOP)
    edges = [begin, *sorted(begin + cut for cut in cuts), STOP]
    parts = [
        each for first, stop in pairwise(edges) for each in detect(series.between(MONDAY, stop), RATE, first, stop)
    ]
    assert [(each.first, each.kind) for each in parts] == [(each.first, each.kind) for each in whole]


@pytest.mark.parametrize("level", [0, 1, 5, 1_000])
def test_a_flat_series_does_not_alarm_for_one_message(level: int) -> None:
    flat = np.full(DAYS * BINS_A_DAY, float(level))
    assert found(changed(flat, NOON, NOON + 1, 1, more=1)) == []


def test_neighbouring_bins_are_one_anomaly_with_a_beginning_an_end_and_a_peak() -> None:
    values = changed(changed(season(50), NOON, NOON + 6, 3), NOON + 3, NOON + 4, 2)
    (spike,) = found(values)
    assert (spike.first, spike.stop, spike.is_over) == (NOON, NOON + 6, True)
    assert spike.expected_low < spike.expected_high < spike.observed
    assert spike.score > 6


def test_an_anomaly_that_goes_on_is_not_over() -> None:
    (silence,) = found(changed(season(50), STOP - 6, STOP, 0))
    assert (silence.first, silence.stop, silence.is_over, silence.observed) == (STOP - 6, STOP, False, 0.0)
    assert silence.score < -4
    assert silence.expected_low > 0


def test_silence_of_a_small_topic_is_told_after_a_while() -> None:
    (silence,) = found(changed(season(3), NOON - 36, NOON + 36, 0))
    assert NOON - 36 < silence.first < NOON


def test_a_job_of_every_night_is_expected_and_its_absence_is_not() -> None:
    values = season(20)
    jobs = values.reshape(DAYS, BINS_A_DAY)
    jobs[:, 24] += 400
    assert found(values) == []
    jobs[-1, 24] -= 400
    (absence,) = found(values)
    assert (absence.first, absence.score < 0) == (TODAY + 24, True)


def test_one_bad_day_does_not_move_what_is_expected() -> None:
    series = season(50)
    bad = changed(series, TODAY - 2 * BINS_A_DAY, TODAY - BINS_A_DAY - 100, 10)
    usual, after = (band(Observed(MONDAY, each), RATE, TODAY, STOP)[1] for each in (series, bad))
    assert np.quantile(np.abs(after / usual - 1), 0.99) < 0.15


def test_a_level_that_stays_is_expected_from_the_third_day_on() -> None:
    days = 14
    values = season(50, days)
    shifted = MONDAY + 9 * BINS_A_DAY
    values = changed(values, shifted, MONDAY + days * BINS_A_DAY, 2)
    begun = {(each.first - shifted) // BINS_A_DAY for each in found(values, begin=shifted)}
    assert 0 in begun
    assert max(begun) < LEVEL_DAYS


def test_a_latency_that_is_not_known_is_no_anomaly_and_one_that_falls_is_none() -> None:
    values = 20 * np.exp(np.random.default_rng(1).normal(0, 0.1, DAYS * BINS_A_DAY))
    values[NOON - MONDAY : NOON - MONDAY + 40] = np.nan
    values[NOON - MONDAY + 60 : NOON - MONDAY + 70] = 1.0
    assert found(values, LATENCY) == []
    values[NOON - MONDAY + 80 : NOON - MONDAY + 84] *= 3
    (slow,) = found(values, LATENCY)
    assert slow.first == NOON + 80


def test_errors_are_compared_with_how_many_were_settled() -> None:
    random = np.random.default_rng(2)
    settled = season(200)
    errors = random.binomial(settled.astype(int), 0.01).astype(float)
    busy = changed(settled, NOON, NOON + 6, 5)
    assert found(changed(errors, NOON, NOON + 6, 5), ERRORS, trials=busy) == []
    (burst,) = found(changed(errors, NOON, NOON + 6, 1, more=30), ERRORS, trials=settled)
    assert 0.01 < burst.expected_high < burst.observed < 1


def test_a_queue_that_nobody_works_on_is_told() -> None:
    depth = season(5)
    depth[NOON - MONDAY : NOON - MONDAY + 12] += np.arange(1, 13) * 50
    (stalled,) = found(depth, DEPTH)
    assert NOON <= stalled.first <= NOON + 4


def test_before_each_weekday_was_seen_nothing_is_expected() -> None:
    days = HISTORY_DAYS_FEWEST
    assert fit(Observed(MONDAY, season(20, days - 1)), RATE) is None
    assert fit(Observed(MONDAY, season(20, days)), RATE) is not None
    low, expected, high = band(Observed(MONDAY, season(20, days)), RATE, MONDAY, MONDAY + 10)
    assert np.isnan([low, expected, high]).all()


def test_the_band_is_around_what_is_expected() -> None:
    low, expected, high = band(Observed(MONDAY, season(50)), RATE, NOON, NOON + 30)
    assert len(low) == len(expected) == len(high) == 30
    assert (low < expected).all()
    assert (expected < high).all()
