"""Scales: where a value is on an axis, and which values the axis names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sealane.pipeline.report.figures import Span

TICKS = 5
"""On a value axis, about: more are a grid, fewer are a guess."""
DATES = 8
"""On a time axis, at most."""
LOGARITHMIC_FROM = 50
"""The largest value is so many times the smallest: on a straight scale the small ones would be one line."""

_WEEK = 168
_MINUTE = 1 / 60
_HOURS = (
    *(_MINUTE / 60, _MINUTE / 12, _MINUTE / 4, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(1, 2, 3, 6, 12, 24, 48, *(_WEEK * 2**power for power in range(8))),
)
"""How far ticks may be apart."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high`, straight or logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False

    def place(self, value: float) -> float:
        """0 at the bottom, 1 at the top; what is beyond either end is there."""
        if self.is_logarithmic:
            low, high = math.log10(self.low), math.log10(self.high)
            value = math.log10(max(value, self.low))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))


def scale_from_zero(values: Iterable[float]) -> Scale:
    """For amounts: what is twice as much is twice as high. Ends at a tick above the largest."""
    largest = max(values, default=0.0)
    if not largest > 0:
        return Scale(0.0, 1.0, (0.0, 1.0))
    step = _nice(largest / TICKS)
    count = math.ceil(round(largest / step, 9))
    return Scale(0.0, count * step, tuple(index * step for index in range(count + 1)))


def scale_of_latencies(values: Iterable[float]) -> Scale:
    """Logarithmic where values are of different sizes, as latencies are, and from zero otherwise."""
    known = [value for value in values if value > 0]
    if not known or max(known) / min(known) < LOGARITHMIC_FROM:
        return scale_from_zero(known)
    low = math.floor(math.log10(min(known)))
    high = math.ceil(round(math.log10(max(known)), 9))
    apart = math.ceil((high - low) / (TICKS + 1))
    ticks = tuple(10.0**power for power in range(low, high + 1, apart))
    return Scale(10.0**low, 10.0**high, ticks, is_logarithmic=True)


def _nice(step: float) -> float:
    """The next of 1, 2, 2.5, 5 and 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= step * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class DateTick:
    time: datetime
    text: str


def dates_of(span: Span) -> list[DateTick]:
    """Moments that a time axis names: whole hours or days of UTC, evenly apart."""
    hours = span.steps * span.step_seconds / 3600
    apart_hours = next((each for each in _HOURS if hours / each <= DATES), _HOURS[-1])
    apart = timedelta(hours=apart_hours)
    # From a Monday on, so that weeks begin with one.
    start = datetime(1970, 1, 5, tzinfo=UTC)
    first = start + math.ceil((span.since - start) / apart) * apart
    end = span.time(span.steps)
    found = []
    while first <= end:
        found.append(DateTick(first, _named(first, apart_hours)))
        first += apart
    return found


def _named(time: datetime, apart_hours: float) -> str:
    """A day where there is one tick a day, the time otherwise; midnight is known by its day."""
    if apart_hours > 4 * _WEEK:
        return f"{time.day} {time:%b %Y}"
    if apart_hours >= 24 or (time.hour, time.minute) == (0, 0):
        return f"{time.day} {time:%b}"
    return f"{time:%H:%M:%S}" if apart_hours < _MINUTE else f"{time:%H:%M}"
