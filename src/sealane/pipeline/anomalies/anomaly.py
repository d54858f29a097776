"""An anomaly, as the table and the alert have it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from sealane.pipeline.anomalies.detecting import Finding, Kind
from sealane.pipeline.anomalies.measures import BIN_SECONDS, MeasureName

Severity = Literal["warning", "critical"]

CRITICAL_SCORE = 12.0
"""Twice as far as it takes to be one."""
CRITICAL_THRESHOLDS = 2.0

_NAMESPACE = uuid.UUID("6f0d9a52-4f0b-5f43-9c2b-8a7f3d1e5b60")


class Contribution(msgspec.Struct, frozen=True):
    """What an anomaly is made of: a producer, or a reason why messages died."""

    who: str
    messages: int
    """During the anomaly."""
    usual: float
    """As many as it had in as long a time before."""


@dataclass(frozen=True, slots=True)
class Series:
    domain: str
    topic: str
    subscription: str
    """Empty for what is of the topic itself, as its rate is."""
    measure: MeasureName


@dataclass(frozen=True, slots=True)
class Anomaly:
    series: Series
    kind: Kind
    began: datetime
    ended: datetime | None
    """None while it goes on: it is told when it begins, and once."""
    observed: float
    """At its peak, as far as it is known: messages a minute, milliseconds, a share, or messages."""
    expected_low: float
    expected_high: float
    score: float
    recorded: datetime
    """The end of the last bin that was looked at: with it, the anomaly came into the table."""
    contributed: tuple[Contribution, ...] = ()

    @property
    def id(self) -> uuid.UUID:
        """The same for the same series, kind and beginning, whoever computes it."""
        series = self.series
        parts = (series.domain, series.topic, series.subscription, series.measure, self.kind, self.began.isoformat())
        return uuid.uuid5(_NAMESPACE, msgspec.json.encode(parts).decode())

    @property
    def severity(self) -> Severity:
        limit = CRITICAL_SCORE if self.kind == "baseline" else CRITICAL_THRESHOLDS
        return "critical" if abs(self.score) >= limit else "warning"


def anomaly_of(series: Series, finding: Finding, stop: int) -> Anomaly:
    """What was found in the bins before `stop`, with times instead of bins."""
    return Anomaly(
        series,
        finding.kind,
        bin_time(finding.first),
        bin_time(finding.stop) if finding.is_over else None,
        finding.observed,
        finding.expected_low,
        finding.expected_high,
        finding.score,
        bin_time(stop),
    )


def bin_time(number: int) -> datetime:
    """When a bin begins."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number * BIN_SECONDS)
