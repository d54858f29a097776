"""Topics as they grow: `spark.readStream.format("sealane")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from sealane.node.logs import TopicLog
from sealane.spark.options.options import ReadOptions
from sealane.spark.source.planning.admission import admit
from sealane.spark.source.planning.chosen_offsets import beginning, is_lasting
from sealane.spark.source.planning.offsets import OffsetJson, Positions, count, ends_of, from_json, reachable, to_json
from sealane.spark.source.planning.registered import Registered
from sealane.spark.source.planning.splitting import splits
from sealane.spark.source.planning.watching import Watch
from sealane.spark.source.rows.tasks import rows_of
from sealane.spark.workers import begin_task


class Beginning(NamedTuple):
    """Where a query without a checkpoint begins."""

    positions: Positions
    lasts: bool
    """Whether it would be found there again."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads them on executors. The checkpoint is the truth about positions.

    What Spark hands in and takes back are offsets as JSON, see `sealane.spark.source.planning.offsets`.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._values = options.values()
        self._watch = Watch(options)
        self._registered = Registered(options)
        self._logs: Sequence[TopicLog] | None = None
        """As they were when they were looked at last."""
        self._beginning: Beginning | None = None
        self._target: Positions | None = None
        """Where a query ends that reads what there is now."""

    def initialOffset(self) -> OffsetJson:
        """Where a query begins that has no checkpoint. With a subscription the node keeps what follows.

        Spark asks several times, after a crash in the first micro-batch too, and means one place. The end of a log that
        grows would be another each time, and what was published in between would be skipped. So a beginning that cannot
        be found again is told as none at all, and comes into the checkpoint by a first micro-batch that is empty.
        """
        positions, lasts = self._begin()
        if not lasts:
            return {}
        self._registered.begin(positions)
        return to_json(positions)

    def getDefaultReadLimit(self) -> ReadLimit:
        messages_max = self._options.messages_max
        return ReadAllAvailable() if messages_max is None else ReadMaxRows(messages_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = ends_of(self._look())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> OffsetJson:
        """How far the next micro-batch goes: one request to the node."""
        begin = from_json(start)
        logs = self._look()
        if not begin:
            entered = self._begin().positions or reachable({}, logs, self._target)
            self._registered.begin(entered)
            return to_json(entered)
        first = self._watch.checked(begin, logs)
        end = _limited(first, reachable(first, logs, self._target), limit)
        if to_json(end) == start:
            # There is nothing new, so everything before is done: Spark would say so with the next batch only.
            self._registered.advance(begin)
        return to_json(end)

    def reportLatestOffset(self) -> OffsetJson | None:
        """Where the logs end, for the query's progress: as of the last look, which Spark has just had taken."""
        return None if self._logs is None else to_json(ends_of(self._logs))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch. One that is done again after a restart comes here without a look at the logs."""
        logs = self._logs if self._logs is not None else self._look()
        first = self._watch.checked(from_json(start), logs)
        return [InputPartition(each) for each in splits(first, from_json(end), self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        begin_task()
        return rows_of(self._options, partition.value, self._values)

    def commit(self, end: dict[str, Any]) -> None:
        """Everything before is done; Spark says so when it has begun the next micro-batch."""
        self._registered.advance(from_json(end))

    def _begin(self) -> Beginning:
        if self._beginning is None:
            starting = self._options.starting
            logs = self._watch.look(at=starting if isinstance(starting, datetime) else None)
            positions = self._watch.checked(beginning(starting, logs), logs)
            self._beginning = Beginning(positions, lasts=is_lasting(starting, logs))
        return self._beginning

    def _look(self) -> Sequence[TopicLog]:
        self._logs = self._watch.look()
        return self._logs


def _limited(start: Positions, end: Positions, limit: ReadLimit) -> Positions:
    if isinstance(limit, ReadMaxRows):
        return admit(start, end, limit.max_rows)
    if isinstance(limit, ReadMinRows) and count(start, end) < limit.min_rows:
        return start
    return end
