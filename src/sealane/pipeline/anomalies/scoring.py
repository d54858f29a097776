"""How far each bin of a series is from what its days are expected to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sealane.pipeline.anomalies.baseline import HISTORY_DAYS, WINDOWS, fit, residuals
from sealane.pipeline.anomalies.measures import BINS_A_DAY, Floats, Measure
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.robust import rolled

LIMITS = {1: 6.0, 3: 5.25, 12: 4.75, 36: 5.0}
"""From how many spreads on a window is an anomaly. A bell would hardly ever get there; traffic has heavier tails, and a
series of five-minute bins has two thousand chances a week."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Of bins `first` on; each array has a row for each of `WINDOWS`. NaN where nothing was expected or observed."""

    first: int
    scores: Floats
    """In spreads, and with a sign."""
    observed: Floats
    low: Floats
    expected: Floats
    high: Floats
    """The range that is none of an anomaly, in the measure's own unit, as a mean over the window."""

    @property
    def strength(self) -> Floats:
        """In limits: from 1 on it is an anomaly."""
        return self.scores / np.array([LIMITS[window] for window in WINDOWS])[:, None]


def score(series: Observed, measure: Measure, begin: int, stop: int) -> Scored:
    """The bins from `begin`, which is the first of a day, up to `stop`: each day by what was before it alone."""
    assert begin % BINS_A_DAY == 0
    part = series.between(begin, stop)
    begin, expected, spreads = _expectations(series, measure, begin, part.stop)
    part = series.between(begin, part.stop)
    rows = [_of_window(measure, part, expected, spreads[index], window) for index, window in enumerate(WINDOWS)]
    scores, observed, low, middle, high = (np.array(column) for column in zip(*rows, strict=True))
    return Scored(part.first, scores, observed, low, middle, high)


def band(series: Observed, measure: Measure, begin: int, stop: int) -> tuple[Floats, Floats, Floats]:
    """The lowest, the expected and the highest value of each bin that is no anomaly; NaN while that is not known."""
    first = begin - begin % BINS_A_DAY
    found = score(series, measure, first, stop)
    columns = (found.low[0], found.expected[0], found.high[0])
    low, expected, high = (
        np.concatenate([np.full(max(found.first - begin, 0), np.nan), column[max(begin - found.first, 0) :]])
        for column in columns
    )
    return low, expected, high


def _expectations(series: Observed, measure: Measure, begin: int, stop: int) -> tuple[int, Floats, Floats]:
    """Of the bins of `series` in these days: where they begin, what is expected, and the spread of each window."""
    expected = np.full(max(stop - begin, 0), np.nan)
    spreads = np.full((len(WINDOWS), len(expected)), np.nan)
    for day in range(begin, stop, BINS_A_DAY):
        baseline = fit(series.between(day - HISTORY_DAYS * BINS_A_DAY, day), measure) if day > series.first else None
        if baseline is not None:
            place = slice(day - begin, min(day + BINS_A_DAY, stop) - begin)
            length = place.stop - place.start
            expected[place] = baseline.expected[:length]
            for index, window in enumerate(WINDOWS):
                spreads[index, place] = baseline.spreads[window][:length]
    cut = max(series.first - begin, 0)
    return begin + cut, expected[cut:], spreads[:, cut:]


def _of_window(
    measure: Measure, part: Observed, expected: Floats, spread: Floats, window: int
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    left = residuals(measure, part.values, expected, part.trials, window)
    if measure.counted:
        trials = np.ones(len(expected)) if part.trials is None else part.trials
        sums = rolled(expected * trials, window)
        unit = rolled(trials, window)
        centre, value = measure.scaled(sums), rolled(part.values, window)
    else:
        sums, unit = expected, np.ones(len(expected))
        centre = rolled(measure.scaled(expected), window) / window
        value = measure.unscaled(centre + left)
    spread = np.fmax(spread, measure.spread_floor(sums, 1 if measure.counted else window))
    reach = LIMITS[window] * spread
    unit = np.where(unit > 0, unit, np.nan) * measure.bin_units
    low, high = measure.unscaled(centre - reach) / unit, measure.unscaled(centre + reach) / unit
    if not measure.falls:
        low = np.zeros(len(high)) * high
    return left / spread, value / unit, low, measure.unscaled(centre) / unit, high
