"""Medians and spreads that a few wild values do not move, of arrays in which NaN is what is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sealane.pipeline.anomalies.measures import Floats

MAD_TO_SIGMA = 1.4826
_P90_TO_SIGMA = 1 / 1.645


def quantiles(values: Floats, shares: Sequence[float], axis: int | None = None) -> list[Floats]:
    """Of what is known along the axis; NaN where nothing is. (Numpy's own warns of that, which nobody could act on.)"""
    if axis is None:
        values, axis = values.ravel(), 0
    ordered = np.sort(values, axis=axis)
    length = ordered.shape[axis]
    found: list[Floats] = []
    if length and not np.isnan(ordered.take(-1, axis)).any():  # NaN would be last.
        for share in shares:
            place = (length - 1) * share
            low = np.asarray(ordered.take(int(place), axis))
            high = np.asarray(ordered.take(min(int(place) + 1, length - 1), axis))
            found.append(np.asarray(low + (high - low) * (place - int(place))))
        return found
    known = np.count_nonzero(~np.isnan(ordered), axis=axis, keepdims=True)
    for share in shares:
        places = np.maximum((known - 1) * share, 0.0)
        below, above = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
        low, high = np.take_along_axis(ordered, below, axis), np.take_along_axis(ordered, above, axis)
        found.append(np.asarray(np.squeeze(low + (high - low) * (places - below), axis)))
    return found


def median(values: Floats, axis: int | None = None) -> Floats:
    return quantiles(values, (0.5,), axis)[0]


def sigma(residuals: Floats, axis: int | None = None) -> Floats:
    """The spread around zero. Where tails are heavier than those of a bell, the tails count."""
    middle, tail = quantiles(np.abs(residuals), (0.5, 0.9), axis)
    return np.fmax(MAD_TO_SIGMA * middle, _P90_TO_SIGMA * tail)


def known_or(values: Floats, other: float) -> Floats:
    """The values, and `other` where one is not known."""
    return np.where(np.isnan(values), other, values)


def rolled(values: Floats, window: int) -> Floats:
    """The sum of each bin and those before it, `window` in all, as if unknown ones were like the others; NaN where less
    than half of them is known.
    """
    known = ~np.isnan(values)
    if window == 1 or not len(values):
        return values
    sums = np.cumsum(np.concatenate([np.zeros(window), np.where(known, values, 0.0)]))
    counts = np.cumsum(np.concatenate([np.zeros(window), known]))
    sums, counts = sums[window:] - sums[:-window], counts[window:] - counts[:-window]
    return np.where(counts * 2 > window, sums * window / np.maximum(counts, 1), np.nan)
