"""Topics as they are now: `spark.read.format("sealane")`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from sealane.spark.options.options import ReadOptions
from sealane.spark.source.planning.chosen_offsets import beginning, ending
from sealane.spark.source.planning.splitting import splits
from sealane.spark.source.planning.watching import Watch
from sealane.spark.source.rows.tasks import rows_of
from sealane.spark.workers import begin_task


class BatchReader(DataSourceReader):
    """Reads what was there when the query was planned. Spark makes it on the driver and carries it to executors."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._values = options.values()

    def partitions(self) -> list[InputPartition]:
        """The tasks. The node is asked here, before any of them runs: an end that is not given is fixed now."""
        options = self._options
        watch = Watch(options)
        logs = watch.look(at=options.starting if isinstance(options.starting, datetime) else None)
        start = beginning(options.starting, logs)
        if isinstance(options.ending, datetime):
            logs = watch.look(at=options.ending)
        end = ending(options.ending, logs, start)
        start = watch.checked(start, logs)
        return [InputPartition(each) for each in splits(start, end, options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor. Spark asks for a partition of its own where there are none."""
        begin_task()
        if partition.value is None:
            return iter(())
        return rows_of(self._options, partition.value, self._values)
