"""Neighbouring bins that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sealane.pipeline.anomalies.measures import BINS_AN_HOUR

QUIET_BINS = BINS_AN_HOUR
"""What is over for less than an hour is not over: it is told once, and again only after it was quiet for as long."""


@dataclass(frozen=True, slots=True)
class Run:
    """From the first bin up to, and without, `stop`."""

    first: int
    stop: int
    is_over: bool
    """Whether it was quiet afterwards for long enough."""


def runs(marked: npt.NDArray[np.bool_], first: int = 0) -> Iterator[Run]:
    """The marked bins, put together where less than `QUIET_BINS` are between them; the array's first is bin `first`."""
    places = np.flatnonzero(marked)
    if not len(places):
        return
    breaks = np.flatnonzero(np.diff(places) > QUIET_BINS)
    for begin, end in zip([0, *(breaks + 1)], [*breaks, len(places) - 1], strict=True):
        stop = int(places[end]) + 1
        yield Run(first + int(places[begin]), first + stop, len(marked) - stop >= QUIET_BINS)
