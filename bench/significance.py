"""Whether paired measurements differ: an exact confidence interval for their ratio, which a few outliers do not move.

It is the interval that belongs to Wilcoxon's signed-rank test (Hodges and Lehmann): the middle of all pairwise means of
the logarithms of the ratios. It assumes no distribution, only that a pair's noise is as likely to favour one as the
other, which taking turns sees to.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
PAIRS_MIN = 6
"""With fewer, no interval has 95 % confidence: that all pairs point one way is chance in more than 1 of 20 cases."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio, and between which two it is with 95 % confidence."""

    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """In words, where a ratio above 1 is faster."""
        if self.low > 1:
            return f"faster by {_percent(self.ratio)} % (95 %: {_percent(self.low)} to {_percent(self.high)})"
        if self.high < 1:
            low, high, middle = (_percent(2 - each) for each in (self.high, self.low, self.ratio))
            return f"slower by {middle} % (95 %: {low} to {high})"
        return f"no difference seen (95 %: {_signed(self.low)} to {_signed(self.high)} %)"


def interval(before: Sequence[float], after: Sequence[float]) -> Interval:
    """Of the ratio after ÷ before, from pairs measured beside each other; all above 0, and at least `PAIRS_MIN`."""
    if len(before) != len(after):
        raise ValueError(f"{len(before)} and {len(after)} measurements are no pairs")
    if len(before) < PAIRS_MIN:
        raise ValueError(f"{len(before)} pairs are too few to tell anything with 95 % confidence; take {PAIRS_MIN}")
    logs = [math.log(second / first) for first, second in zip(before, after, strict=True)]
    means = sorted((logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i, len(logs)))
    cut = rank_sums_to_cut(len(logs))
    return Interval(*(math.exp(each) for each in (statistics.median(means), means[cut], means[-1 - cut])))


def rank_sums_to_cut(pairs: int) -> int:
    """How many of the pairwise means may be left out at each end, so that 95 % confidence remains.

    The rank sum of so many pairs that differ by chance alone is at most `cut` in at most 2.5 % of all cases.
    """
    ways = [1]  # How many of the 2 ** n choices of ranks have each sum.
    for rank in range(1, pairs + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    allowed = (1 - CONFIDENCE) / 2 * 2**pairs
    cut, seen = 0, 0
    for total, count in enumerate(ways):
        seen += count
        if seen > allowed:
            break
        cut = total
    return cut


def _percent(ratio: float) -> str:
    """By how many per cent it is above 1, with a digit more where that is little."""
    change = (ratio - 1) * 100
    return f"{change:.0f}" if abs(change) >= 10 else f"{change:.1f}"


def _signed(ratio: float) -> str:
    text = _percent(ratio)
    return text.replace("-", "−") if text.startswith("-") else f"+{text}"
