"""A month of traffic as it might be, with anomalies planted in it that a person would call so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sealane.pipeline.anomalies.measures import (
    BINS_A_DAY,
    BINS_AN_HOUR,
    DEPTH,
    ERRORS,
    LATENCY,
    LATENCY_SETTLED_FEWEST,
    RATE,
    Floats,
    Measure,
)
from sealane.pipeline.anomalies.observed import Observed

FIRST = 20_514 * BINS_A_DAY
"""Monday, the 2nd of March 2026."""
DAYS = 30
WATCHED = FIRST + 8 * BINS_A_DAY
"""From here on anomalies are planted, and looked for."""
BINS = DAYS * BINS_A_DAY


@dataclass(frozen=True, slots=True)
class Planted:
    what: str
    begin: int
    stop: int


@dataclass(frozen=True, slots=True)
class Generated:
    name: str
    measure: Measure
    series: Observed
    planted: list[Planted] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shape:
    """The rate of a topic: messages in a bin at its level, and how they vary."""

    level: float
    daily: float = 0.6
    """How much lower nights are than days."""
    weekend: float = 1.0
    """What weekends have of a workday."""
    trend: float = 0.0
    """More each day, as a share."""
    overdispersion: float = 0.0
    """The relative variance beyond that of chance: bursts."""
    day_noise: float = 0.0
    """Some days are better than others."""
    nightly_job: float = 0.0
    """What a job at two o'clock adds to one bin, in levels."""

    def mean(self, random: np.random.Generator) -> Floats:
        bins = np.arange(BINS)
        hour = bins % BINS_A_DAY / BINS_AN_HOUR
        day = bins // BINS_A_DAY
        sun = 1 - self.daily * (0.5 + 0.5 * np.cos(2 * np.pi * (hour - 15) / 24 + np.pi))
        lunch = 1 - 0.15 * self.daily * np.exp(-(((hour - 12.5) / 0.7) ** 2))
        week = np.where(day % 7 >= 5, self.weekend, 1.0)
        days = np.exp(random.normal(0, self.day_noise, DAYS))[day]
        job = self.nightly_job * (bins % BINS_A_DAY == 2 * BINS_AN_HOUR)
        return self.level * (sun * lunch * week + job) * days * (1 + self.trend) ** day

    def counts(self, mean: Floats, random: np.random.Generator) -> Floats:
        if self.overdispersion:
            shape = 1 / self.overdispersion
            mean = mean * random.gamma(shape, 1 / shape, len(mean))
        return random.poisson(mean).astype(np.float64)


SHAPES = {
    "large": Shape(10_000, overdispersion=0.0005),
    "large, growing": Shape(4_000, trend=0.012, overdispersion=0.002, weekend=0.7),
    "medium": Shape(300, overdispersion=0.01, day_noise=0.04),
    "medium, office hours": Shape(200, daily=0.95, weekend=0.1, overdispersion=0.01),
    "with a nightly job": Shape(120, nightly_job=6.0, overdispersion=0.01),
    "bursty": Shape(80, overdispersion=0.12),
    "small": Shape(20, weekend=0.8),
    "sparse": Shape(1.5, daily=0.3),
    "a pulse": Shape(5, daily=0.0),
}


def month(seed: int) -> list[Generated]:
    """All of it: for each shape a rate, and of some topics what their subscriptions do."""
    random = np.random.default_rng(seed)
    found = []
    for name, shape in SHAPES.items():
        found.append(_rate(name, shape, random))
        if shape.level >= 20:
            found += [_latency(name, shape, random), _errors(name, shape, random), _depth(name, shape, random)]
    return found


# --- series -----------------------------------------------------------------------------------------------------------


def _rate(name: str, shape: Shape, random: np.random.Generator) -> Generated:
    mean = shape.mean(random)
    planted = []
    for begin, room in _places(random, 4):
        kind = random.choice(["spike", "silence", "drop", "shift"], p=[0.35, 0.3, 0.2, 0.15])
        length = int(random.integers(3, 25))
        if kind == "spike":
            length = int(random.integers(2, 13))
            mean[begin : begin + length] += max(random.uniform(1.5, 5) * mean[begin], 30 / length, 8.0)
        elif kind == "shift":
            length = min(room, 3 * BINS_A_DAY)
            factor = random.choice([random.uniform(1.8, 3), random.uniform(0.25, 0.5)])
            mean[begin:] *= factor
        else:
            left = 0.0 if kind == "silence" else random.uniform(0.1, 0.35)
            # Nobody misses what hardly ever comes: it lasts until a person would have noticed.
            while (1 - left) * mean[begin : begin + length].sum() < 60 and length < room // 2:
                length += 6
            mean[begin : begin + length] *= left
        planted.append(Planted(str(kind), FIRST + begin, FIRST + begin + length))
    if shape.daily == 0:
        quiet = np.round(mean)
        return Generated(name, RATE, Observed(FIRST, quiet), planted)
    return Generated(name, RATE, Observed(FIRST, shape.counts(mean, random)), planted)


def _latency(name: str, shape: Shape, random: np.random.Generator) -> Generated:
    """Noisier where fewer messages are settled; unknown where too few are. Now and then one bin is a bit slow."""
    load = shape.mean(random)
    noise = 0.05 + 0.5 / np.sqrt(load + 1)
    middle = random.uniform(3, 25) * (1 + 0.5 * load / load.max())
    values = middle * np.exp(random.normal(0, noise)) * np.where(random.random(BINS) < 0.003, 1.4, 1)
    planted = []
    for place, _ in _places(random, 4):
        begin, length = place, int(random.integers(3, 25))
        while load[begin : begin + length].min() < 2 * LATENCY_SETTLED_FEWEST:
            begin += BINS_AN_HOUR  # Nobody sees how slow it is while nothing is under way.
        values[begin : begin + length] *= random.uniform(2, 6)
        planted.append(Planted("slow", FIRST + begin, FIRST + begin + length))
    values[random.poisson(load) < LATENCY_SETTLED_FEWEST] = np.nan
    return Generated(name, LATENCY, Observed(FIRST, values), planted)


def _errors(name: str, shape: Shape, random: np.random.Generator) -> Generated:
    settled = shape.counts(shape.mean(random), random)
    share = np.full(BINS, random.choice([0.0, 0.0003, 0.002, 0.01]))
    planted = []
    for begin, room in _places(random, 4):
        length, more = int(random.integers(2, 13)), random.uniform(0.04, 0.4)
        while more * settled[begin : begin + length].sum() < 20 and length < room // 2:
            length += 6
        share[begin : begin + length] += more
        planted.append(Planted("errors", FIRST + begin, FIRST + begin + length))
    errors = random.binomial(settled.astype(np.int64), share).astype(np.float64)
    return Generated(name, ERRORS, Observed(FIRST, errors, settled), planted)


def _depth(name: str, shape: Shape, random: np.random.Generator) -> Generated:
    """What is under way for some seconds, and, while consumers are gone, all that comes."""
    load = shape.mean(random)
    under_way = random.poisson(load * 0.02 * np.exp(_wandering(random, 0.3))).astype(np.float64)
    planted = []
    for begin, room in _places(random, 3):
        length = int(random.integers(6, 25))
        while load[begin : begin + length].sum() < 150 and length < room // 2:
            length += 6
        backlog = np.cumsum(load[begin : begin + length])
        under_way[begin : begin + length] += backlog
        drain = max(3, length // 3)
        under_way[begin + length : begin + length + drain] += np.linspace(backlog[-1], 0, drain)
        planted.append(Planted("stall", FIRST + begin, FIRST + begin + length + drain))
    return Generated(name, DEPTH, Observed(FIRST, under_way), planted)


def _wandering(random: np.random.Generator, size: float) -> Floats:
    """Noise with a memory of an hour or so."""
    steps, found = random.normal(0, size * 0.45, BINS), np.zeros(BINS)
    for place in range(1, BINS):
        found[place] = 0.9 * found[place - 1] + steps[place]
    return found


def _places(random: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """Where anomalies begin, and how much room each has: each in a part of the watched days of its own."""
    room = (BINS - (WATCHED - FIRST)) // count
    begins = WATCHED - FIRST + np.arange(count) * room + random.integers(0, room // 3, count)
    return [(int(begin), room * 2 // 3) for begin in begins]


# --- how well it is found ---------------------------------------------------------------------------------------------

AFTER_BINS = 2 * BINS_AN_HOUR
"""What is told so long after an anomaly is still about it."""

WEEKS = (FIRST + BINS - WATCHED) / (7 * BINS_A_DAY)

Detect = Callable[[Generated], list[tuple[int, int]]]


@dataclass(slots=True)
class Tally:
    planted: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list)
    false_by_series: dict[str, int] = field(default_factory=dict)

    @property
    def recall(self) -> float:
        return self.found / self.planted

    @property
    def false_a_series_week(self) -> float:
        return sum(self.false_by_series.values()) / len(self.false_by_series) / WEEKS

    @property
    def false_of_worst_series(self) -> float:
        return max(self.false_by_series.values()) / WEEKS


def tally(generated: list[Generated], detect: Detect) -> Tally:
    """Compare what is found, as spans of bins, with what was planted."""
    found = Tally()
    for each in generated:
        alarms = detect(each)
        spans = [(planted.begin, planted.stop + AFTER_BINS) for planted in each.planted]
        label = f"{each.name}: {each.measure.name}"
        found.false_by_series[label] = 0
        for planted, (begin, stop) in zip(each.planted, spans, strict=True):
            found.planted += 1
            if any(first < stop and end > begin for first, end in alarms):
                found.found += 1
            else:
                found.missed.append(f"{label}: {planted}")
        for first, end in alarms:
            if not any(first < stop and end > begin for begin, stop in spans):
                found.false_by_series[label] += 1
    return found
