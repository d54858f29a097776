"""Where each subscription begins to count: what was there before it came is not for it to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.facts.stored import PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

READER = (*PLACE, "subscription")


def last_filter() -> Column:
    """Of the history of one subscription: the filter that it has now. Only what is told of how it delivers knows that,
    and all other events have none; neither has what a node says of a position alone.
    """
    from pyspark.sql import functions as f

    told = f.expr("event IN ('subscribed', 'configured') OR (event = 'standing' AND mode IS NOT NULL)")
    return f.max_by(f.when(told, f.col("filter")), f.when(told, f.col("entry")))


def where_it_was() -> tuple[Column, Column, Column]:
    """Of the events of one subscription: where it began (`begin`), what it has passed over (`passed`), its `filter`."""
    from pyspark.sql import functions as f

    begun = f.expr("event IN ('subscribed', 'standing')")
    return (
        f.min_by(f.when(begun, f.col("stop")), f.when(begun, f.col("entry"))).alias("begin"),
        f.max(f.when(f.expr("event IN ('advanced', 'sought', 'subscribed')"), f.col("stop"))).alias("passed"),
        last_filter().alias("filter"),
    )


def beginnings(runs: DataFrame) -> DataFrame:
    """A row for each subscription of a partition that the history knows: `base` is the first offset that is for it, by
    where it began (at the log's beginning, its end, or a moment) and what it was set to or has passed over since.

    It is null where what is left to do cannot be told: a filter passes over some without a word, and a subscription
    that is gone has nothing to do.
    """
    from pyspark.sql import functions as f

    return (
        runs.where("subscription IS NOT NULL")
        .groupBy(*READER)
        .agg(*where_it_was(), f.max_by("event", "entry").alias("last"))
        .selectExpr(
            *READER,
            "IF(filter IS NULL AND last != 'unsubscribed', greatest(coalesce(begin, 0), coalesce(passed, 0)), NULL)"
            " AS base",
        )
    )
