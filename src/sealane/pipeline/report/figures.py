"""What the report says, as plain values: times, series and rows, few enough to be drawn and read.

A section that is `None` has no table to come from yet; the page then says how to get one.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta

SERIES_SHOWN = 6
"""Of a chart: as many as there are colours that everybody can tell apart. The rest is summed up as one more."""
POINTS_SHOWN = 400
"""Of a series, at most: about as many as a chart has pixels to show them."""
ROWS_SHOWN = 50
"""Of a table. Whoever wants more asks for it with `sealane pipeline sql`."""
OTHERS = "others"

_HOUR, _DAY = 3_600, 86_400
STEPS_SECONDS = (
    *(1, 5, 15, 60, 300, 600, 900, 1_800),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 7 * _DAY, 30 * _DAY),
)
"""What a point may stand for: lengths of time that people know."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that the report is about, cut into steps of equal length; the first and the last may be cut short."""

    since: datetime
    until: datetime
    step_seconds: int

    @classmethod
    def between(cls, since: datetime, until: datetime) -> Span:
        """With the shortest step that needs no more than `POINTS_SHOWN` of them. It begins at a whole step."""
        until = max(until, since + timedelta(seconds=1))
        for seconds in STEPS_SECONDS:
            begin = datetime.fromtimestamp(since.timestamp() // seconds * seconds, since.tzinfo)
            found = cls(begin, until, seconds)
            if found.steps <= POINTS_SHOWN:
                break
        return found

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    @property
    def steps(self) -> int:
        return max(1, -int(-self.seconds // self.step_seconds))

    def time(self, step: float) -> datetime:
        """When a step begins."""
        return self.since + timedelta(seconds=step * self.step_seconds)

    def place(self, moment: datetime) -> float:
        """Where a moment is: 0 at the beginning of the first step, 1 at the end of the last one."""
        share = (moment - self.since).total_seconds() / (self.steps * self.step_seconds)
        return min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    values: tuple[float | None, ...]
    """One for each step of the span; `None` where there is nothing to tell."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What came, of one topic."""

    name: str
    published: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Reader:
    """What one subscription did in the span, and what it has left to do at its end."""

    topic: str
    subscription: str
    settled: int
    errors: int
    """Dead, expired or dropped."""
    repeated: int
    """Attempts beyond the first."""
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_p99_ms: float | None
    depth: int | None
    """`None` where a filter passes over some: nobody can tell what is left."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What came."""

    published: int
    size_bytes: int
    topics: tuple[Topic, ...]
    by_topic: tuple[Series, ...]
    """Messages a step."""
    by_hour: tuple[tuple[int, ...], ...]
    """Messages by weekday, Monday first, and hour of the day, in UTC."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What became of it."""

    settled: int
    dead: int
    latency_p95_ms: float | None
    readers: tuple[Reader, ...]
    latency_ms: tuple[Series, ...]
    """Of all that was settled in a step: p50, p95, p99."""
    error_ratio: Series
    depth: tuple[Series, ...]
    """What a subscription had not settled by the end of a step."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Those of one subscription that died of one reason."""

    topic: str
    subscription: str
    cause: str
    reason: str
    messages: int
    first: datetime
    last: datetime

    @property
    def redrive(self) -> str:
        """The command that gives all of the subscription's another chance. It may be pasted whatever the names are."""
        return shlex.join(["sealane", "dlq", "redrive", self.topic, self.subscription])


@dataclass(frozen=True, slots=True)
class Anomaly:
    topic: str
    subscription: str
    measure: str
    kind: str
    began: datetime
    ended: datetime
    observed: float | None
    expected_low: float | None
    expected_high: float | None
    score: float | None
    contributed: str
    """What contributed, in words."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Of one subscription: `published` is the sum of all that follows."""

    topic: str
    subscription: str
    published: int
    acked: int
    dead_lettered: int
    expired: int
    dropped: int
    passed_over: int
    in_flight: int
    missing: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A message that breaks the balance."""

    problem: str
    topic: str
    partition: int
    offset: int
    id: str
    subscription: str
    detail: str


@dataclass(frozen=True, slots=True)
class Proven:
    """What a reconciliation has found, and when; `None` if that is not known."""

    made: datetime | None
    balance: tuple[Balance, ...]
    problems: tuple[Problem, ...]
    """The first of them."""
    counts: dict[str, int]
    """Of all problems, by their kind."""


@dataclass(frozen=True, slots=True)
class RouteWeight:
    topic: str
    node: str
    weight: float
    expected_ms: float | None
    load: float | None
    messages: int | None


@dataclass(frozen=True, slots=True)
class Routes:
    """The weights of the last version: those of one hour of the week, or those that hold for all of them."""

    version: int
    made: datetime | None
    hour: int | None
    weights: tuple[RouteWeight, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    made: datetime
    span: Span | None
    """`None` if no message has come in yet."""
    traffic: Traffic | None
    deliveries: Deliveries | None
    dead_letters: tuple[DeadLetters, ...] | None
    anomalies: tuple[Anomaly, ...] | None
    anomalies_in_all: int
    proven: Proven | None
    routes: Routes | None
