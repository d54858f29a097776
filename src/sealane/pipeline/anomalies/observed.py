"""A series as it was observed: a value for each bin, from the first one on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sealane.pipeline.anomalies.measures import BINS_A_DAY, Floats

Bins = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Observed:
    """`values[i]` is of bin `first + i`; bins are counted from 1970 on. What is not known is NaN."""

    first: int
    values: Floats
    trials: Floats | None = None
    """Of a share, how many it is a share of; then `values` are counts."""

    def __post_init__(self) -> None:
        assert self.trials is None or self.trials.shape == self.values.shape

    @property
    def stop(self) -> int:
        return self.first + len(self.values)

    @property
    def shown(self) -> Floats:
        """The values as people see them: shares, where there are trials."""
        if self.trials is None:
            return self.values
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.trials > 0, self.values / self.trials, np.nan)

    def between(self, begin: int, stop: int) -> Observed:
        """The part of it that is in these bins."""
        begin, stop = max(begin, self.first), max(min(stop, self.stop), self.first)
        chosen = slice(begin - self.first, max(stop, begin) - self.first)
        return Observed(begin, self.values[chosen], None if self.trials is None else self.trials[chosen])

    def whole_days(self) -> Observed:
        """The same, filled up with NaN at its beginning, so that it begins with a day."""
        missing = self.first % BINS_A_DAY
        lead = np.full(missing, np.nan)
        trials = None if self.trials is None else np.concatenate([lead, self.trials])
        return Observed(self.first - missing, np.concatenate([lead, self.values]), trials)


def laid_out(bins: Bins, values: Floats, first: int, stop: int, *, missing: float) -> Floats:
    """Values of some bins as one for each bin of a span; `missing` where there is none."""
    found = np.full(stop - first, missing)
    inside = (bins >= first) & (bins < stop)
    found[bins[inside] - first] = values[inside]
    return found


def carried_on(values: Floats) -> Floats:
    """Each unknown value is that of the last bin before it: what has not changed is not told."""
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(known)] if len(values) else values
