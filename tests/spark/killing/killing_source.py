"""The product's own sink, with a plan of what happens at its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from sealane.spark.data_source import SealaneDataSource
from sealane.spark.options.options import WriteOptions, write_options
from sealane.spark.sink.writers import BatchWriter, Staged, StreamWriter
from tests.spark.killing.plan import Plan, Step


class KillingDataSource(SealaneDataSource):
    """`format("sealane")` of a job that is killed."""

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return KillingBatchWriter(write_options(dict(self.options.items())), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        return KillingStreamWriter(write_options(dict(self.options.items())), schema)


class KillingBatchWriter(BatchWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.topic = str(options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return written(self, super().write, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        come_by(self, Step.BEFORE_PUBLISHING)
        super().commit(messages)
        come_by(self, Step.AFTER_PUBLISHING)


class KillingStreamWriter(StreamWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.topic = str(options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return written(self, super().write, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        come_by(self, Step.BEFORE_PUBLISHING)
        super().commit(messages, batchId)
        come_by(self, Step.AFTER_PUBLISHING)


Writer = KillingBatchWriter | KillingStreamWriter


def written(
    writer: Writer, write: Callable[[Iterator[pa.RecordBatch]], Staged], rows: Iterator[pa.RecordBatch]
) -> Staged:
    come_by(writer, Step.BEFORE_STAGING)
    staged = write(interrupted(writer, rows))
    come_by(writer, Step.AFTER_STAGING)
    return staged


def interrupted(writer: Writer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, with a step before the second: the first is on its way to the node by then."""
    for number, batch in enumerate(batches):
        if number == 1:
            come_by(writer, Step.BETWEEN_STAGES)
        yield batch


def come_by(writer: Writer, step: Step) -> None:
    Plan.of_this_job().come_by(writer.topic, step)
