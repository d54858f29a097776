"""History, message by message: what happened to each offset, in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERY = ("domain", "topic", "partition", "subscription", "offset")
"""What a delivery is known by: a message, and a subscription that has it."""

HANDED_OUT = ("granted", "failed", "released")
SETTLING = ("acked", "dead-lettered", "expired", "dropped")
"""What ends a delivery."""


def runs_of(history: DataFrame) -> DataFrame:
    """A row for each run of offsets, as the table has history: `first` up to, and without, `stop`. Events without any
    have one row, with nulls.
    """
    return history.selectExpr("*", "explode_outer(runs) AS run").selectExpr(
        *(name for name in history.columns if name != "runs"), "run.first AS first", "run.stop AS stop"
    )


def events_of(runs: DataFrame) -> DataFrame:
    """A row for each message that an event of deliveries is about.

    Runs of millions are spread over as many rows only here, where they are about to be counted.
    """
    chosen = ", ".join(f"'{name}'" for name in (*HANDED_OUT, *SETTLING))
    return runs.where(f"event IN ({chosen}) AND stop > first").selectExpr(
        *("domain", "topic", "partition", "subscription", "explode(sequence(first, stop - 1)) AS offset"),
        *("event", "entry", "time", "consumer", "cause", "reason"),
    )
