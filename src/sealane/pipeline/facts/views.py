"""What people ask most, computed from the facts when it is asked: traffic by the minute, and dead letters by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READER = ("domain", "topic", "subscription")
_ENDS = "outcome IN ('dead-lettered', 'expired', 'dropped')"


def traffic(messages: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Per minute, topic and subscription: what came, what was settled and how late, and what is left to do.

    What came is of the topic, so each of its subscriptions has the same; `depth` is what it had not settled by the end
    of that minute.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    minute = "date_trunc('minute', {}) AS minute"
    came = (
        messages.selectExpr("domain", "topic", minute.format("created"), "bytes")
        .groupBy("domain", "topic", "minute")
        .agg(f.count("*").alias("published"), f.sum("bytes").alias("bytes"))
    )
    done = (
        deliveries.selectExpr("*", minute.format("settled"))
        .groupBy(*_READER, "minute")
        .agg(
            f.count("*").alias("settled"),
            f.sum(f.expr(f"IF({_ENDS}, 1, 0)")).alias("errors"),
            f.sum(f.expr("GREATEST(attempts - 1, 0)")).alias("repeated"),
            *(
                f.percentile_approx("latency_ms", share, 10_000).alias(f"latency_p{name}_ms")
                for name, share in (("50", 0.5), ("95", 0.95), ("99", 0.99))
            ),
        )
    )
    readers = deliveries.select(*_READER).distinct()
    of_reader = readers.join(came, ["domain", "topic"])
    joined = of_reader.join(done, [*_READER, "minute"], "full").na.fill(0, ["published", "bytes", "settled", "errors"])
    so_far = Window.partitionBy(*_READER).orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    return joined.withColumn("depth", f.sum(f.col("published") - f.col("settled")).over(so_far))


def dead_letters(deliveries: DataFrame) -> DataFrame:
    """By why they died, each with the command that gives them another chance."""
    from pyspark.sql import functions as f

    dead = deliveries.where("outcome = 'dead-lettered'").groupBy(*_READER, "cause", "reason")
    return dead.agg(
        f.count("*").alias("messages"), f.min("settled").alias("first"), f.max("settled").alias("last")
    ).selectExpr("*", "concat('sealane dlq redrive ', domain, '/', topic, ' ', subscription) AS redrive")
