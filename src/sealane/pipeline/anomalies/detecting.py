"""The anomalies of a series: by its baseline, and by thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sealane.pipeline.anomalies.measures import BASELINED, BINS_A_DAY, Floats, Measure
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.runs import Run, runs
from sealane.pipeline.anomalies.scoring import score

Kind = Literal["baseline", "rule"]

LOOK_BACK_BINS = BINS_A_DAY
"""What is before the bins that are asked for, and scored again: an anomaly that began there was found there."""
ERRORS_FEWEST = 3
"""Fewer failures in a bin are no rate, whatever share of it they are."""
_STILL_SCORE = 3.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly of one series. Times are bins; it ends before `stop`."""

    kind: Kind
    first: int
    stop: int
    is_over: bool
    observed: float
    """At its peak."""
    expected_low: float
    expected_high: float
    """What would have been none: of a rule, up to its threshold."""
    score: float
    """How many spreads it is away at its peak, with a sign; of a rule, how many thresholds it is."""


def detect(series: Observed, measure: Measure, begin: int, stop: int) -> list[Finding]:
    """The anomalies that begin in these bins. What is found does not depend on how a span is cut into calls, but for
    how much of an anomaly is known yet.
    """
    found = [] if measure not in BASELINED else _by_baseline(series, measure, begin, stop)
    return sorted(found + _by_rule(series, measure, begin, stop), key=lambda each: (each.first, each.kind))


def _by_baseline(series: Observed, measure: Measure, begin: int, stop: int) -> list[Finding]:
    first = begin - LOOK_BACK_BINS
    scored = score(series, measure, first - first % BINS_A_DAY, stop)
    found = []
    for sign in (1, -1) if measure.falls else (1,):
        strength = np.nan_to_num(sign * scored.strength, nan=0.0)
        strongest = strength.max(axis=0, initial=0.0)
        for run in runs(strongest >= 1, scored.first):
            if run.first < begin:
                continue
            begun = run.first - scored.first
            peak = begun + int(strongest[begun : run.stop - scored.first].argmax())
            at = int(strength[:, peak].argmax()), peak
            low, high = float(scored.low[at]), float(scored.high[at])
            # A window is over its limit for a while after all is well: the end is that of the bins themselves.
            alone = np.flatnonzero(sign * scored.scores[0, begun : run.stop - scored.first] >= _STILL_SCORE)
            stop_of_run = run.first + int(alone[-1]) + 1 if len(alone) else run.stop
            values = float(scored.observed[at]), low, high, float(scored.scores[at])
            found.append(Finding("baseline", run.first, stop_of_run, run.is_over, *values))
    return found


def _by_rule(series: Observed, measure: Measure, begin: int, stop: int) -> list[Finding]:
    if measure.threshold is None:
        return []
    part = series.between(begin - LOOK_BACK_BINS, stop)
    shown = part.shown / measure.bin_units
    crossed = np.nan_to_num(shown, nan=0.0) > measure.threshold
    if part.trials is not None:
        crossed &= part.values >= ERRORS_FEWEST
    return [_rule(run, shown[run.first - part.first : run.stop - part.first], measure.threshold)
            for run in runs(crossed, part.first) if run.first >= begin]  # fmt: skip


def _rule(run: Run, values: Floats, threshold: float) -> Finding:
    peak = float(np.nanmax(values))
    return Finding("rule", run.first, run.stop, run.is_over, peak, 0.0, threshold, peak / threshold)
