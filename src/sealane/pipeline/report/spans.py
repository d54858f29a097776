"""The span in Spark's words: which rows are within it, and in which of its steps each is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sealane.pipeline.report.figures import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BEFORE = -1
"""The step of all that was before the span."""


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def moment_of(micros_since_1970: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros_since_1970)


@dataclass(frozen=True, slots=True)
class Asked:
    """The span, and from when on and up to when rows count: a span begins at a whole step."""

    span: Span
    since: datetime
    until: datetime

    def within(self, rows: DataFrame, time: str) -> DataFrame:
        """Those in the span, with their `step`. Directories of other days are not looked into."""
        first = f"timestamp_micros({micros(self.since)})"
        # A day more, since the day of a row is that of Spark's zone when it was written.
        return self.until_its_end(rows.where(f"{time} >= {first} AND date >= date_sub({first}, 1)"), time)

    def until_its_end(self, rows: DataFrame, time: str) -> DataFrame:
        """Those in the span and before it, where their step is `BEFORE`."""
        stop = f"timestamp_micros({micros(self.until)})"
        step = f"floor((unix_micros({time}) - {micros(self.span.since)}) / {self.span.step_seconds * 1_000_000})"
        return rows.where(f"{time} < {stop} AND date <= date_add({stop}, 1)").selectExpr(
            "*", f"CAST(greatest({step}, {BEFORE}) AS INT) AS step"
        )
