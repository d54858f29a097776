"""A Spark query that takes in what there is now, each micro-batch once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TakeIn = Callable[["DataFrame", int], None]
"""Is given the rows of a micro-batch and its number: the same rows for the same number, after a crash too."""


def take_in(
    spark: SparkSession,
    lake: Lake,
    settings: PipelineSettings,
    name: str,
    take: TakeIn,
    *,
    log: str = "messages",
) -> int:
    """Run to the end of what there is when this begins. Returns how many rows came in; raises what stopped it."""
    stream = spark.readStream.format("sealane").options(**settings.source, log=log).load()
    return run_to_its_end(stream, lake, name, take)


def run_to_its_end(stream: DataFrame, lake: Lake, name: str, take: TakeIn) -> int:
    """The same for any stream; its checkpoint is the query's of this name."""
    query = (
        stream.writeStream.queryName(f"sealane-{name}")
        .foreachBatch(take)
        .option("checkpointLocation", str(lake.checkpoint_path(name)))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return sum(progress["numInputRows"] for progress in query.recentProgress)
