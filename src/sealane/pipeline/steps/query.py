"""A Spark query that takes in what there is now, each micro-batch once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sealane.log import get_log
from sealane.pipeline.lake.failing import LakeFull, StepFailed, is_no_space, is_sparks, reason_of
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.steps.checkpoint import check_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TakeIn = Callable[["DataFrame", int], None]
"""Is given the rows of a micro-batch and its number: the same rows for the same number, after a crash too."""

log = get_log("sealane.pipeline")


def run_to_its_end(stream: DataFrame, lake: Lake, name: str, take: TakeIn) -> int:
    """Run to the end of what there is when this begins; the checkpoint is the query's of this name. Returns how many
    rows came in.

    What `take` raises is raised as it is; what Spark says becomes `LakeFull` or `StepFailed`, or `CorruptData` if the
    checkpoint cannot be read.
    """
    check_checkpoint(lake, name)
    failed: list[Exception] = []

    def taken(rows: DataFrame, number: int) -> None:
        try:
            take(rows, number)
        except Exception as error:
            failed.append(error)  # Spark would pass on no more than its text.
            raise

    writer = (
        stream.writeStream.queryName(f"sealane-{name}")
        .foreachBatch(taken)
        .option("checkpointLocation", str(lake.checkpoint_path(name)))
        .trigger(availableNow=True)
    )
    try:
        query = writer.start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
    except Exception as error:
        raise _in_words(failed[-1] if failed else error, lake, name) from error
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def _in_words(error: Exception, lake: Lake, name: str) -> Exception:
    """What to raise for what has stopped a query."""
    if is_no_space(error):
        return LakeFull(lake.root)
    if not is_sparks(error):
        return error
    log.debug("a query was stopped", query=name, said=str(error))
    return StepFailed(name, lake.root, reason_of(error))
