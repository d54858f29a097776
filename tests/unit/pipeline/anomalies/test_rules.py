"""Rules: thresholds that are crossed once, until it was quiet for a while."""

from __future__ import annotations

import numpy as np
import pytest

from sealane.pipeline.anomalies.detecting import ERRORS_FEWEST, Finding, detect
from sealane.pipeline.anomalies.measures import DEPTH, ERRORS, LATENCY, USAGE, Floats, Measure
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.runs import QUIET_BINS


def crossings(values: list[float] | Floats, measure: Measure, trials: Floats | None = None) -> list[Finding]:
    found = detect(Observed(0, np.array(values, dtype=float), trials), measure, 0, len(values))
    return [each for each in found if each.kind == "rule"]


@pytest.mark.parametrize(("measure", "threshold"), [(LATENCY, 50.0), (DEPTH, 10_000.0), (USAGE, 0.8)])
def test_a_threshold_is_crossed_above_it_and_not_at_it(measure: Measure, threshold: float) -> None:
    assert crossings([threshold] * 3, measure) == []
    (crossed,) = crossings([threshold, threshold * 1.5, threshold * 3, threshold], measure)
    assert (crossed.first, crossed.stop, crossed.is_over) == (1, 3, False)
    assert (crossed.expected_low, crossed.expected_high) == (0.0, threshold)
    assert (crossed.observed, crossed.score) == pytest.approx((threshold * 3, 3.0))


def test_errors_have_a_threshold_and_a_few_are_no_rate() -> None:
    settled = np.full(3, 1_000.0)
    assert crossings([0, 1, 0], ERRORS, settled) == []
    assert crossings([0, ERRORS_FEWEST - 1, 0], ERRORS, settled) == []
    (crossed,) = crossings([0, ERRORS_FEWEST, 0], ERRORS, settled)
    assert crossed.observed == pytest.approx(ERRORS_FEWEST / 1_000)


@pytest.mark.parametrize(("quiet", "times"), [(QUIET_BINS - 1, 1), (QUIET_BINS, 2)])
def test_it_is_told_again_only_after_it_was_quiet_for_a_while(quiet: int, times: int) -> None:
    values = [99.0, *[1.0] * quiet, 99.0]
    assert len(crossings(values, LATENCY)) == times


def test_what_began_before_the_bins_that_are_asked_for_was_told_before() -> None:
    series = Observed(0, np.full(20, 99.0))
    assert len(detect(series, LATENCY, 0, 10)) == 1
    assert detect(series, LATENCY, 10, 20) == []


def test_latency_that_is_not_known_crosses_nothing() -> None:
    assert crossings([np.nan] * 5, LATENCY) == []
