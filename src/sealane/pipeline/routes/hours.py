"""From telemetry to what was seen of each node in each hour, by Spark: however many routes and topics there are, what
comes back is a row for each node and hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sealane.pipeline.routes.curves import NODE_HOURS
from sealane.pipeline.routes.seeing import BUSY, SLOWEST
from sealane.pipeline.routes.telemetry import BUCKET_MS_FIRST, BUCKETS, BUCKETS_PER_DOUBLING, FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("hour", "node")
# What cannot be is left out, row by row: one router that tells nonsense does not end the job. NaN is above all numbers.
_SENSIBLE = f"""
    format = {FORMAT} AND target IS NOT NULL AND minute IS NOT NULL AND attempts > 0 AND failures BETWEEN 0 AND attempts
    AND target_capacity_per_second > 0 AND target_capacity_per_second < 1e12
    AND target_per_second >= 0 AND target_per_second < 1e12
"""


def seen_by_spark(telemetry: DataFrame, first: int, stop: int) -> pa.Table:
    """What telemetry says of each node and hour, from `first` up to, and without, `stop`, both counted from 1970, with
    the columns of `NODE_HOURS`. Percentiles are of the buckets of latency, added up over all routes to the node.
    """
    hours = f"hour >= {first} AND hour < {stop}"
    rows = telemetry.where(_SENSIBLE).selectExpr(
        "*", "CAST(floor(unix_seconds(minute) / 3600) AS BIGINT) AS hour", "target AS node"
    )
    rows = rows.where(hours).persist()
    try:
        seen = _rates(rows).join(_latencies(rows), list(_PLACE), "left").toArrow()
    finally:
        rows.unpersist()
    return seen.select(NODE_HOURS.names).cast(NODE_HOURS).sort_by([(name, "ascending") for name in _PLACE])


def _rates(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    minutes = rows.groupBy(*_PLACE, "minute").agg(
        f.sum("attempts").alias("attempts"),
        f.sum("failures").alias("failures"),
        f.max("target_per_second").alias("came"),
        f.max("target_capacity_per_second").alias("capacity"),
    )
    minutes = minutes.withColumn("routed", f.col("attempts") / 60)
    return minutes.groupBy(*_PLACE).agg(
        f.sum("attempts").alias("attempts"),
        f.sum("failures").alias("failures"),
        f.avg("routed").alias("per_second"),
        f.percentile_approx("routed", BUSY, 10_000).alias("busy_per_second"),
        f.avg(f.greatest(f.col("came") - f.col("routed"), f.lit(0.0))).alias("other_per_second"),
        f.max("capacity").alias("capacity_per_second"),
    )


def _latencies(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    counts = rows.selectExpr(*_PLACE, "posexplode(latency_counts) AS (bucket, count)").where("count > 0")
    # The exact percentile takes how often each value is there; it is one of few values, so it costs little.
    bucket = f.ceil(f.expr(f"percentile(least(bucket, {BUCKETS - 1}), {SLOWEST}, count)"))
    p95_ms = f.lit(BUCKET_MS_FIRST) * f.pow(f.lit(2.0), (bucket - 0.5) / BUCKETS_PER_DOUBLING)
    return counts.groupBy(*_PLACE).agg(p95_ms.alias("p95_ms"))
