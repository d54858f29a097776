"""What is measured, on which scale it is compared, and how little of a difference is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MeasureName = Literal["rate", "latency", "errors", "depth", "usage"]

BIN_SECONDS = 300
"""One bin. Of a topic with a few messages a minute a single minute says nothing; five are still soon enough to tell."""
LATENCY_SETTLED_FEWEST = 5
"""The 95th percentile of fewer messages is that of none: it is not known."""
BINS_A_DAY = 86_400 // BIN_SECONDS
BINS_AN_HOUR = 3_600 // BIN_SECONDS


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of series, by what its noise is like."""

    name: MeasureName
    counted: bool
    """Counts are compared by their square roots, on which their own noise is 1, whatever their size; others by their
    logarithms, on which a difference is a ratio."""
    offset: float
    """Added before a logarithm: of values far below it, differences do not matter."""
    noise: float
    """The spread of a bin is at least this on its scale: a flat series does not alarm for one message."""
    share: float
    """And at least this share of what is expected: what is too small to matter is no anomaly, however sure it is."""
    seasonal: bool = True
    falls: bool = False
    """Whether less than expected is an anomaly too."""
    threshold: float | None = None
    """A value that is never right, season or not."""
    bin_units: float = 1.0
    """A bin's value is divided by it where people see it."""

    def scaled(self, values: Floats) -> Floats:
        if self.counted:
            return 2 * np.sqrt(np.maximum(values, 0) + 0.375)
        return np.log(np.maximum(values, 0) + self.offset)

    def unscaled(self, scaled: Floats) -> Floats:
        """The values again, at least 0."""
        found = np.maximum(scaled, 0) ** 2 / 4 - 0.375 if self.counted else np.exp(scaled) - self.offset
        return np.maximum(found, 0)

    def spread_floor(self, expected: Floats, window: int) -> Floats:
        """The least spread of the mean of so many neighbouring bins, on the scale."""
        share = self.share * np.sqrt(expected) if self.counted else np.full(expected.shape, self.share)
        return np.sqrt(self.noise**2 / window + share**2)


RATE = Measure("rate", counted=True, offset=0.1, noise=1.0, share=0.05, falls=True, bin_units=BIN_SECONDS / 60)
"""Messages published to a topic in a bin; people see them by the minute."""
LATENCY = Measure("latency", counted=False, offset=1.0, noise=0.1, share=0.05, threshold=50.0)
"""The 95th percentile of a bin, in milliseconds, from published to settled."""
ERRORS = Measure("errors", counted=True, offset=1e-6, noise=1.0, share=0.05, seasonal=False, threshold=0.001)
"""Of what was settled in a bin, the share that was not acknowledged: few, so that they have no season to speak of."""
DEPTH = Measure("depth", counted=False, offset=10.0, noise=0.3, share=0.1, threshold=10_000.0)
"""What was not settled by the end of a bin."""
USAGE = Measure("usage", counted=False, offset=0.01, noise=0.1, share=0.05, threshold=0.8)
"""The share of a limit that is in use. It has a threshold alone: what is filled grows, and is emptied at once."""

MEASURES: dict[MeasureName, Measure] = {each.name: each for each in (RATE, LATENCY, ERRORS, DEPTH, USAGE)}
BASELINED = (RATE, LATENCY, ERRORS, DEPTH)
