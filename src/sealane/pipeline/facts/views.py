"""What people ask most, computed from the facts when it is asked: traffic by the minute, and dead letters by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.facts.beginnings import READER, beginnings
from sealane.pipeline.facts.left import NAMED, changes, lags
from sealane.pipeline.facts.stored import PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ENDS = "outcome IN ('dead-lettered', 'expired', 'dropped')"
_MINUTE = "date_trunc('minute', {}) AS minute"
_BECAME = ("outcome", "attempts", "latency_ms")
_COUNTED = ("published", "bytes", "settled", "errors", "repeated")
UNKNOWN = "unknown"
"""A producer that has left no name: what was staged, or came in with others and was put together with theirs."""


def traffic(messages: DataFrame, deliveries: DataFrame, history: DataFrame | None = None) -> DataFrame:
    """Per minute and topic, a row for each producer and one for each subscription: what came, what was settled of it
    and how late, and what is left to do.

    A row has a `producer` or a `subscription`, never both. What came is of the whole topic in rows of subscriptions, so
    each has the same; in those of producers it is theirs, and what was settled is by any subscription. `depth` is what
    the subscription had not settled by the end of that minute, and `lag_seconds` how old the oldest of that was, by
    the minute in which it came.
    """
    who = f"{_name_of('producer')} AS producer"
    came = messages.selectExpr(*PLACE, "offset", who, _MINUTE.format("created"), "bytes")
    done = deliveries.selectExpr(*READER, "offset", *_BECAME, _MINUTE.format("settled"))
    base = _base(deliveries, history)
    of_readers = _with_left(_of_readers(came, done, base), changes(messages, deliveries, base), base)
    return _of_producers(came, done).unionByName(of_readers, allowMissingColumns=True)


def dead_letters(deliveries: DataFrame) -> DataFrame:
    """By why they died, each with the command that gives them another chance."""
    from pyspark.sql import functions as f

    dead = deliveries.where("outcome = 'dead-lettered'").groupBy(*NAMED, "cause", "reason")
    return dead.agg(
        f.count("*").alias("messages"), f.min("settled").alias("first"), f.max("settled").alias("last")
    ).selectExpr("*", "concat('sealane dlq redrive ', domain, '/', topic, ' ', subscription) AS redrive")


# --- what came, and what was settled ----------------------------------------------------------------------------------


def _of_producers(came: DataFrame, done: DataFrame) -> DataFrame:
    """Spark leaves all of this out where only rows of subscriptions are asked for."""
    which = ("domain", "topic", "producer", "minute")
    whose = came.select(*PLACE, "offset", "producer")
    theirs = done.join(whose, [*PLACE, "offset"]).groupBy(*which).agg(*_settled())
    return _filled(came.groupBy(*which).agg(*_published()).join(theirs, list(which), "full"))


def _of_readers(came: DataFrame, done: DataFrame, base: DataFrame) -> DataFrame:
    of_topic = came.groupBy("domain", "topic", "minute").agg(*_published())
    readers = done.select(*NAMED).unionByName(base.select(*NAMED)).distinct()
    theirs = done.groupBy(*NAMED, "minute").agg(*_settled())
    return _filled(readers.join(of_topic, ["domain", "topic"]).join(theirs, [*NAMED, "minute"], "full"))


def _published() -> list[Column]:
    from pyspark.sql import functions as f

    return [f.count("*").alias("published"), f.sum("bytes").alias("bytes")]


def _settled() -> list[Column]:
    from pyspark.sql import functions as f

    return [
        f.count("*").alias("settled"),
        f.sum(f.expr(f"IF({_ENDS}, 1, 0)")).alias("errors"),
        f.sum(f.expr("GREATEST(attempts - 1, 0)")).alias("repeated"),
        *(
            f.percentile_approx("latency_ms", share, 10_000).alias(f"latency_p{name}_ms")
            for name, share in (("50", 0.5), ("95", 0.95), ("99", 0.99))
        ),
    ]


def _filled(rows: DataFrame) -> DataFrame:
    return rows.na.fill(0, list(_COUNTED))


def _name_of(column: str) -> str:
    """A producer as text: the principal, where a door has written that down, or what it calls itself if that can be
    read, or else the random identity of a client in hex.
    """
    text = f"CAST({column} AS STRING)"
    return (
        f"CASE WHEN {column} IS NULL THEN '{UNKNOWN}' "
        f"WHEN {text} LIKE 'principal:%' THEN substring({text}, 11) "
        f"WHEN {text} RLIKE '^[\\\\x20-\\\\x7e]+$' THEN {text} "
        f"ELSE lower(hex({column})) END"
    )


# --- what is left to do -----------------------------------------------------------------------------------------------


def _base(deliveries: DataFrame, history: DataFrame | None) -> DataFrame:
    from pyspark.sql import functions as f

    if history is not None:
        return beginnings(history)
    # Nobody says where they began: all that there is is for them.
    return deliveries.select(*READER).distinct().withColumn("base", f.lit(0))


def _with_left(rows: DataFrame, changed: DataFrame, base: DataFrame) -> DataFrame:
    """Null where what is left cannot be told."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    keys = [*NAMED, "minute"]
    so_far = Window.partitionBy(*NAMED).orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    told = base.groupBy(*NAMED).agg(f.expr("count(base) = count(*)").alias("told"))
    left = (
        rows.join(changed.select(*keys, "due", "done"), keys, "left")
        .join(lags(changed), keys, "left")
        .join(f.broadcast(told), list(NAMED), "left")
        .na.fill(0, ["due", "done", "lag_seconds"])
        .withColumn("depth", f.sum(f.col("due") - f.col("done")).over(so_far))
    )
    known = {name: f.when(f.col("told"), f.col(name)) for name in ("depth", "lag_seconds")}
    return left.withColumns(known).drop("due", "done", "told")
