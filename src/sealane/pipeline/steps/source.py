"""The source of the pipeline's own query: it plans as `format("sealane")` does, and its tasks write files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from sealane.pipeline.clean.rows import MessageRows
from sealane.pipeline.steps.gated_reader import GatedReader
from sealane.pipeline.steps.staged import Destination
from sealane.pipeline.steps.writing import FILE_ROWS, RangeWriter
from sealane.spark.options.options import ReadOptions, read_options
from sealane.spark.source.rows.tasks import rows_of
from sealane.spark.workers import begin_task

if TYPE_CHECKING:
    from collections.abc import MutableMapping

NAME = "sealane-lake"


class WritingReader(GatedReader):
    """Micro-batches as every reader of messages has them. A row is a file that was written, not a message."""

    def __init__(self, options: ReadOptions, gate: str, rows: MessageRows, destination: Destination) -> None:
        super().__init__(options, gate)
        self._rows = rows
        self._destination = destination

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        begin_task()
        range = partition.value
        writer = RangeWriter(self._rows, self._destination, range.topic)
        return writer.write(rows_of(self._options, range, None))


def writing_source(gate: str, rows: MessageRows, destination: Destination) -> type[DataSource]:
    """For Spark to register. It travels by value, since the lake's keys are in it: options are shown in plans."""

    class WritingSource(DataSource):
        def __init__(self, options: MutableMapping[str, str]) -> None:
            super().__init__(options)

        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return from_arrow_schema(FILE_ROWS)

        def streamReader(self, schema: StructType) -> WritingReader:  # noqa: N802 - as Spark calls it
            return WritingReader(read_options(dict(self.options.items()), is_stream=True), gate, rows, destination)

    return WritingSource
