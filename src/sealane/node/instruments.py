"""What measures are made of: histograms and rates, updated once a batch whatever its length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import exp

RATE_SECONDS = 10.0
"""Rates tell of about the last this many seconds."""

SECONDS_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""From half of a good sync to the ten minutes of a queue that somebody should look at."""
COUNT_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)


class Histogram:
    """Counts of values by size. A value may stand for many: the messages of a batch share one."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS_BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """For each bound what is at most that and more than the one before; then what is more than all."""
        self.sum = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += weight
        self.sum += value * weight

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, fraction: float) -> float | None:
        """The bound that this fraction of the values is at most; None without values, infinity beyond the bounds."""
        total = self.count
        if not total:
            return None
        seen = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            seen += count
            if seen >= fraction * total:
                return bound
        return float("inf")


class Rate:
    """How many a second lately: each one counts less the longer it is ago. `now` is the loop's time."""

    __slots__ = ("_at", "_level")

    def __init__(self) -> None:
        self._level = 0.0
        self._at = 0.0

    def add(self, count: int, now: float) -> None:
        self._level = self._level * exp((self._at - now) / RATE_SECONDS) + count
        self._at = now

    def per_second(self, now: float) -> float:
        return self._level * exp((self._at - now) / RATE_SECONDS) / RATE_SECONDS
