"""A Spark query that takes in each micro-batch once, when it is told to, and stays until the next time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sealane.log import get_log
from sealane.pipeline.lake.failing import LakeFull, StepFailed, is_no_space, is_sparks, reason_of
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.steps.checkpoint import check_checkpoint
from sealane.pipeline.steps.gate import Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sealane.spark.source.planning.offsets import OffsetJson

TakeIn = Callable[["DataFrame", int], None]
"""Is given the rows of a micro-batch and its number: the same rows for the same number, after a crash too."""
LOOK_SECONDS = 0.2
"""How often it is looked at whether a query still runs, while it is waited for."""

log = get_log("sealane.pipeline")


class StandingQuery:
    """To start one takes Python processes and seconds; to tell one that runs to go on takes neither.

    What `take` raises is raised as it is; what Spark says becomes `LakeFull` or `StepFailed`. After that it is of no
    more use than to be closed.
    """

    def __init__(self, stream_of: Callable[[str], DataFrame], lake: Lake, name: str, take: TakeIn) -> None:
        """`stream_of` is given the path of the gate that its source has to wait at. The checkpoint is the query's of
        this name; raises `CorruptData` if it cannot be gone on from.
        """
        check_checkpoint(lake, name)
        self._lake = lake
        self._name = name
        self._take = take
        self._failed: list[Exception] = []
        self._gate = Gate()
        try:
            writer = (
                stream_of(self._gate.path)
                .writeStream.queryName(f"sealane-{name}")
                .foreachBatch(self._taken)
                .option("checkpointLocation", str(lake.checkpoint_path(name)))
            )
            self._query = writer.start()
        except Exception as error:
            self._gate.close()
            raise self._in_words(error) from error

    def take_in(self, until: OffsetJson | None = None) -> None:
        """Go to the end of what there is now, or no further than `until`. On return Spark has noted all of it as done.

        A micro-batch that an earlier life has begun comes first.
        """
        try:
            self._wait()
            self._gate.let_through(until)
            self._wait()
        except Exception as error:
            raise self._in_words(error) from error

    def close(self) -> None:
        """End it, whatever it does."""
        self._gate.close()
        try:
            self._query.stop()
        except Exception as error:
            if not is_sparks(error):
                raise
            log.debug("a query had ended before it was stopped", query=self._name, said=str(error))

    def _taken(self, rows: DataFrame, number: int) -> None:
        try:
            self._take(rows, number)
        except Exception as error:
            self._failed.append(error)  # Spark would pass on no more than its text.
            raise

    def _wait(self) -> None:
        """Until its source is at the gate. Raises what has ended it before."""
        while not self._gate.is_asked(LOOK_SECONDS):
            if not self._query.isActive:
                self._query.awaitTermination()
                raise StepFailed(self._name, self._lake.root, "somebody has stopped it")

    def _in_words(self, error: Exception) -> Exception:
        """What to raise for what has stopped it."""
        error = self._failed[-1] if self._failed else error
        if is_no_space(error):
            return LakeFull(self._lake.root)
        if not is_sparks(error):
            return error
        log.debug("a query was stopped", query=self._name, said=str(error))
        return StepFailed(self._name, self._lake.root, reason_of(error))
