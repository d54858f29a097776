"""Deliveries: for each message and subscription, what became of it, from its first grant to its end.

A delivery is *open* from its first event to the one that settles it. Open ones are few, as many as consumers hold or
wait for another try, whatever the number of messages: they are what a step hands to the next one.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from sealane.pipeline.facts.events import DELIVERY, SETTLING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SETTLING = ", ".join(f"'{name}'" for name in SETTLING)

OPEN = (
    *DELIVERY,
    *("first_granted", "grants", "consumer", "granted_entry", "cause", "reason", "failed_entry"),
    *("outcome", "settled", "settled_entry"),
)
"""The columns of a delivery that is under way. The entries tell which of two events was the later one."""


def gathered(events: DataFrame) -> DataFrame:
    """What events say of each delivery, with the columns of `OPEN`."""
    return _merged(
        events.selectExpr(
            *DELIVERY,
            "IF(event = 'granted', time, NULL) AS first_granted",
            # What goes back unhandled was no attempt.
            "CASE event WHEN 'granted' THEN 1 WHEN 'released' THEN -1 ELSE 0 END AS grants",
            "IF(event = 'granted', consumer, NULL) AS consumer",
            "IF(event = 'granted', entry, NULL) AS granted_entry",
            "IF(event = 'failed', cause, NULL) AS cause",
            "IF(event = 'failed', reason, NULL) AS reason",
            "IF(event = 'failed', entry, NULL) AS failed_entry",
            f"IF(event IN ({_SETTLING}), event, NULL) AS outcome",
            f"IF(event IN ({_SETTLING}), time, NULL) AS settled",
            f"IF(event IN ({_SETTLING}), entry, NULL) AS settled_entry",
        )
    )


def joined(*parts: DataFrame) -> DataFrame:
    """The same deliveries, of which one part knows the beginning and another one more."""
    return _merged(reduce(lambda one, other: one.unionByName(other), parts))


def _merged(parts: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return parts.groupBy(*DELIVERY).agg(
        f.min("first_granted").alias("first_granted"),
        f.sum("grants").cast("int").alias("grants"),
        f.max_by("consumer", "granted_entry").alias("consumer"),
        f.max("granted_entry").alias("granted_entry"),
        f.max_by("cause", "failed_entry").alias("cause"),
        f.max_by("reason", "failed_entry").alias("reason"),
        f.max("failed_entry").alias("failed_entry"),
        # The first that settled it: whatever is told later is about a lease that was over.
        f.min_by("outcome", "settled_entry").alias("outcome"),
        f.min_by("settled", "settled_entry").alias("settled"),
        f.min("settled_entry").alias("settled_entry"),
    )


def facts_of(settled: DataFrame, messages: DataFrame) -> DataFrame:
    """Rows of the table for settled deliveries; of the table of messages, those of the same offsets at least. A message
    that is not there leaves its columns null.
    """
    place = ("domain", "topic", "partition", "offset")
    known = messages.selectExpr(*place, "id", "created AS published", "bytes")
    return settled.join(known, list(place), "left").selectExpr(
        *place,
        *("id", "subscription", "published", "first_granted", "settled", "GREATEST(grants, 0) AS attempts", "outcome"),
        "(unix_micros(settled) - unix_micros(published)) / 1000 AS latency_ms",
        *("bytes", "consumer", "cause", "reason", "to_date(settled) AS date"),
    )
