"""A figure: what was measured, on what, how much of it is asked for, and every round it was found by."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

SEALANE = "sealane"

KEPT_PERCENTS = tuple(
    [float(percent) for percent in range(90)]
    + [round(100 - 10 ** (1 - step / 20), 4) for step in range(61)]  # From 90 to 99.99, evenly on a log axis.
    + [100.0]
)
"""The percentiles that are kept of a distribution: enough to draw it, its tail most finely."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of several rounds; all of them are kept."""

    name: str
    unit: str
    value: float
    rounds: tuple[float, ...]
    reach: float | None = None
    """What it should be at least (or at most, if less is better)."""
    less_is_better: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    system: str = SEALANE
    """Who was measured: Sealane, or the name of a peer."""
    work: str = ""
    """Figures of the same work and part, on different systems, may be compared."""
    part: str = ""
    """Which of the values that a work has: a rate, or one of several percentiles."""
    samples: tuple[float, ...] = ()
    """A distribution at `KEPT_PERCENTS`, or a course over time; empty where the rounds say it all."""
    foreign: tuple[float, ...] = ()
    """Of all processor time that was used, the share that others used, in each round."""
    run: str = ""
    """The moment (UTC) of the run that it comes from: only rounds of one run are like and like."""

    @property
    def reached(self) -> bool | None:
        if self.reach is None:
            return None
        return self.value <= self.reach if self.less_is_better else self.value >= self.reach

    @property
    def is_sealane(self) -> bool:
        return self.system == SEALANE


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that at least so many per cent of them do not exceed. There must be at least one."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def thinned(values: Sequence[float]) -> tuple[float, ...]:
    """A distribution in as few numbers as drawing it takes: its values at `KEPT_PERCENTS`."""
    ordered = sorted(values)
    return tuple(round(percentile(ordered, percent), 4) for percent in KEPT_PERCENTS) if ordered else ()


def at_percent(samples: Sequence[float], percent: float) -> float:
    """Of a thinned distribution, the value at the nearest percentile that was kept and is not below."""
    return samples[min(bisect.bisect_left(KEPT_PERCENTS, percent), len(KEPT_PERCENTS) - 1)]


def number(value: float) -> str:
    """As much of a number as matters to a reader."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:,.1f}" if size >= 10 else f"{value:,.2f}"
