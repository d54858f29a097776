"""What subscriptions have left to do, over time: what came for them and was not settled yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from sealane.pipeline.facts.beginnings import READER, beginnings
from sealane.pipeline.facts.stored import PLACE
from sealane.pipeline.report.figures import OTHERS, SERIES_SHOWN, Series
from sealane.pipeline.report.spans import BEFORE, Asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED = ("domain", "topic", "subscription")


@dataclass(frozen=True, slots=True)
class Depths:
    left: dict[tuple[str, str], int]
    """At the end of the span, by topic and subscription; those with a filter are not here."""
    series: tuple[Series, ...]
    """Of those that had most to do at some time."""


def count_depths(messages: DataFrame, history: DataFrame, deliveries: DataFrame, asked: Asked) -> Depths:
    """A subscription is counted from where it began, or was set to: what was there before is not for it to do."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    readers = f.broadcast(beginnings(history).where("base IS NOT NULL"))
    came = asked.until_its_end(messages.select(*PLACE, "offset", "created", "date"), "created")
    done = asked.until_its_end(deliveries.select(*READER, "offset", "settled", "date"), "settled")
    changes = (
        _counted(came.join(readers, list(PLACE)), 1)
        .unionByName(_counted(done.join(readers, list(READER)), -1))
        .groupBy(*_NAMED, "step")
        .agg(f.sum("change").alias("change"))
        .persist()
    )
    try:
        so_far = Window.partitionBy(*_NAMED).orderBy("step")
        depth = changes.withColumn("depth", f.sum("change").over(so_far)).groupBy(*_NAMED)
        peaks = depth.agg(f.max("depth").alias("peak"), f.max_by("depth", "step").alias("left"))
        rows = sorted(peaks.collect(), key=lambda row: (-row.peak, row.domain, row.topic, row.subscription))
        shown = [_shown(row.domain, row.topic, row.subscription) for row in rows if row.peak > 0][:SERIES_SHOWN]
        return Depths(
            {(f"{row.domain}/{row.topic}", row.subscription): max(0, row.left) for row in rows},
            _series(changes, shown, asked),
        )
    finally:
        changes.unpersist()


def _counted(rows: DataFrame, sign: int) -> DataFrame:
    from pyspark.sql import functions as f

    counts = rows.where("offset >= base").groupBy(*_NAMED, "step")
    return counts.agg((f.count("*") * sign).alias("change"))


def _series(changes: DataFrame, shown: list[str], asked: Asked) -> tuple[Series, ...]:
    from pyspark.sql import functions as f

    name = f.concat(f.concat_ws("/", "domain", "topic"), f.lit(" "), f.col("subscription"))
    series = f.when(name.isin(shown), name).otherwise(f.lit(OTHERS)).alias("series")
    found = {each: [0] * (asked.span.steps - BEFORE) for each in [*shown, OTHERS]}
    for row in changes.groupBy(series, "step").agg(f.sum("change").alias("change")).collect():
        found[row.series][row.step - BEFORE] += row.change
    depths = {each: [max(0, depth) for depth in accumulate(values)][-BEFORE:] for each, values in found.items()}
    if not any(depths[OTHERS]):
        del depths[OTHERS]
    return tuple(Series(each, tuple(map(float, values))) for each, values in depths.items())


def _shown(domain: str, topic: str, subscription: str) -> str:
    return f"{domain}/{topic} {subscription}"
