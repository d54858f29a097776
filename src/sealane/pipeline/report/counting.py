"""What came and what became of it, counted by Spark to as few rows as a page shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sealane.pipeline.facts.views import dead_letters
from sealane.pipeline.report.depths import Depths
from sealane.pipeline.report.figures import (
    OTHERS,
    ROWS_SHOWN,
    SERIES_SHOWN,
    DeadLetters,
    Deliveries,
    Reader,
    Series,
    Topic,
    Traffic,
)
from sealane.pipeline.report.spans import Asked, moment_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERCENTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
ACCURACY = 10_000
"""Of percentiles: exact for as many different latencies, and off by a ten-thousandth of the rows beyond."""
_THURSDAY = 3
"""1 January 1970, counted from Monday."""


def count_traffic(messages: DataFrame, asked: Asked) -> Traffic:
    from pyspark.sql import functions as f

    name = f.concat_ws("/", "domain", "topic").alias("name")
    came = asked.within(messages.select("domain", "topic", "created", "bytes", "date"), "created")
    amounts = (f.count("*").alias("published"), f.coalesce(f.sum("bytes"), f.lit(0)).alias("bytes"))
    rows = came.groupBy(name).agg(*amounts).orderBy(f.desc("published"), "name").limit(ROWS_SHOWN).collect()
    topics = tuple(Topic(row.name, row.published, row.bytes) for row in rows)
    shown = [topic.name for topic in topics[:SERIES_SHOWN]]
    series = f.when(name.isin(shown), name).otherwise(f.lit(OTHERS)).alias("series")
    parts = came.groupBy(series, "step").agg(*amounts).collect()
    by_topic = {each: [0.0] * asked.span.steps for each in [*shown, OTHERS]}
    for row in parts:
        by_topic[row.series][row.step] += row.published
    if not any(by_topic[OTHERS]):
        del by_topic[OTHERS]
    return Traffic(
        published=sum(row.published for row in parts),
        size_bytes=sum(row.bytes for row in parts),
        topics=topics,
        by_topic=tuple(Series(each, tuple(values)) for each, values in by_topic.items()),
        by_hour=_by_hour(came),
    )


def _by_hour(came: DataFrame) -> tuple[tuple[int, ...], ...]:
    """In UTC, whatever the zone of the session is."""
    hours = came.selectExpr("floor(unix_seconds(created) / 3600) AS hours").selectExpr(
        f"CAST((floor(hours / 24) + {_THURSDAY}) % 7 AS INT) AS day", "CAST(hours % 24 AS INT) AS hour"
    )
    found = {(row.day, row.hour): row["count"] for row in hours.groupBy("day", "hour").count().collect()}
    return tuple(tuple(found.get((day, hour), 0) for hour in range(24)) for day in range(7))


def count_deliveries(deliveries: DataFrame, depths: Depths, asked: Asked) -> Deliveries:
    from pyspark.sql import functions as f

    done = asked.within(deliveries, "settled")
    # The row without a step is that of all of them.
    rows = {row.step: row for row in done.rollup("step").agg(*_amounts()).collect()}
    whole = rows.pop(None, None)
    steps = range(asked.span.steps)
    by_reader = done.groupBy("domain", "topic", "subscription").agg(*_amounts())
    readers = by_reader.orderBy(f.desc("settled"), "domain", "topic", "subscription").limit(ROWS_SHOWN).collect()
    return Deliveries(
        settled=whole.settled if whole else 0,
        dead=(whole.dead or 0) if whole else 0,
        latency_p95_ms=whole.p95 if whole else None,
        readers=_readers(readers, depths),
        latency_ms=tuple(
            Series(name, tuple(rows[step][name] if step in rows else None for step in steps)) for name, _ in PERCENTILES
        ),
        error_ratio=Series(
            "error ratio", tuple(rows[step].errors / rows[step].settled if step in rows else None for step in steps)
        ),
        depth=depths.series,
    )


def _amounts() -> list[Column]:
    from pyspark.sql import functions as f

    return [
        f.count("*").alias("settled"),
        f.expr("count_if(outcome IN ('dead-lettered', 'expired', 'dropped'))").alias("errors"),
        f.expr("count_if(outcome = 'dead-lettered')").alias("dead"),
        f.expr("coalesce(sum(greatest(attempts - 1, 0)), 0)").alias("repeated"),
        *(f.percentile_approx("latency_ms", part, ACCURACY).alias(name) for name, part in PERCENTILES),
    ]


def _readers(rows: Iterable[Any], depths: Depths) -> tuple[Reader, ...]:
    """Those that settled something, and those that have something left to do and settled nothing."""
    found = {}
    for row in rows:
        reader = (f"{row.domain}/{row.topic}", row.subscription)
        amounts = (row.settled, row.errors, row.repeated, row.p50, row.p95, row.p99)
        found[reader] = Reader(*reader, *amounts, depths.left.get(reader))
    for reader, left in depths.left.items():
        if left and reader not in found and len(found) < ROWS_SHOWN:
            found[reader] = Reader(*reader, 0, 0, 0, None, None, None, left)
    return tuple(found.values())


def count_dead_letters(deliveries: DataFrame, asked: Asked) -> tuple[DeadLetters, ...]:
    from pyspark.sql import functions as f

    rows = dead_letters(asked.within(deliveries, "settled")).orderBy(f.desc("messages"), f.desc("last"))
    times = rows.withColumns({"first": f.unix_micros("first"), "last": f.unix_micros("last")}).limit(ROWS_SHOWN)
    return tuple(
        DeadLetters(
            f"{row.domain}/{row.topic}",
            row.subscription,
            row.cause or "",
            row.reason or "",
            row.messages,
            moment_of(row["first"]),
            moment_of(row["last"]),
        )
        for row in times.collect()
    )
