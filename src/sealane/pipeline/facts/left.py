"""What subscriptions have left to do, by the minute: how much it is, and for how long the oldest of it has waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.facts.beginnings import READER
from sealane.pipeline.facts.stored import PLACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAMED = ("domain", "topic", "subscription")
_KEYS = [*NAMED, "minute"]


def changes(messages: DataFrame, deliveries: DataFrame, base: DataFrame) -> DataFrame:
    """A row for each subscription and minute in which anything changed: `due` messages came for it, `done` were settled
    by it. Of those that came, `closed` are settled by now, the last of them at `last_settled`; `oldest` came first.

    `base` is the first offset that is for a subscription, in each partition.
    """
    from pyspark.sql import functions as f

    base = f.broadcast(base.where("base IS NOT NULL"))
    came = messages.select(*PLACE, "offset", "created").join(base, list(PLACE)).where("offset >= base")
    gone = deliveries.select(*READER, "offset", "published", "settled").join(base, list(READER))
    gone = gone.where("offset >= base AND published IS NOT NULL")

    def in_minute(rows: DataFrame, moment: str) -> DataFrame:
        return rows.withColumn("minute", f.date_trunc("minute", moment))

    due = in_minute(came, "created").groupBy(*_KEYS).agg(f.count("*").alias("due"), f.min("created").alias("oldest"))
    done = in_minute(gone, "settled").groupBy(*_KEYS).agg(f.count("*").alias("done"))
    by_coming = in_minute(gone, "published").groupBy(*_KEYS)
    closed = by_coming.agg(f.count("*").alias("closed"), f.max("settled").alias("last_settled"))
    found = due.join(done, _KEYS, "full").join(closed, _KEYS, "full")
    return found.na.fill(0, ["due", "done", "closed"])


def lags(changed: DataFrame) -> DataFrame:
    """For each minute at whose end something was left: `lag_seconds`, the age of the oldest, by the first message of
    the minute in which it came.

    What came in a minute is settled when its last message is. Of minutes in their order, only one that stays open for
    longer than all before it is ever the oldest, from when those were settled until it is itself: so each minute is
    here once, however much was waiting.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    of_reader = Window.partitionBy(*NAMED)
    before = of_reader.orderBy("minute").rowsBetween(Window.unboundedPreceding, -1)
    settled = "IF(closed >= due, date_trunc('minute', last_settled), end + INTERVAL 1 MINUTE)"
    return (
        changed.withColumn("end", f.max("minute").over(of_reader))
        .where("due > 0")
        .withColumn("settled_by", f.expr(settled))
        .withColumn("begin", f.greatest("minute", f.max("settled_by").over(before)))
        .where("settled_by > begin")
        .selectExpr(
            *NAMED,
            "oldest",
            "explode(sequence(begin, settled_by - INTERVAL 1 MINUTE, INTERVAL 1 MINUTE)) AS minute",
        )
        .selectExpr(*_KEYS, "CAST(unix_seconds(minute) + 60 - unix_seconds(oldest) AS BIGINT) AS lag_seconds")
    )
