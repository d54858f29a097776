"""History up to where it was before messages were read: all that it is about is in the table of messages then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sealane
from sealane.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sealane.spark.source.planning.offsets import Positions

NAME = "sealane-history"


def history_ends(settings: PipelineSettings) -> Positions:
    """Where the journals end now."""
    from sealane.spark.source.planning.offsets import TopicPositions

    with sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane:
        logs = lane.logs(*(name.strip() for name in settings.topics.split(",")))
    return {
        log.name: TopicPositions(log.incarnation, {at.partition: at.journal_end for at in log.partitions})
        for log in logs
    }


def history_until(spark: SparkSession, settings: PipelineSettings, ends: Positions) -> DataFrame:
    """A stream that goes no further than these, if it is one that ends."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from sealane.spark.options.options import read_options
    from sealane.spark.source.spark_types import history_columns
    from sealane.spark.source.stream_reader import StreamReader

    class BoundedReader(StreamReader):
        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as Spark calls it
            self._target = ends

    class HistorySource(DataSource):
        """It travels by value, with the ends in it."""

        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return history_columns()

        def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - as Spark calls it
            return BoundedReader(read_options(dict(self.options.items()), is_stream=True))

    spark.dataSource.register(HistorySource)
    return spark.readStream.format(NAME).options(**settings.source, log="history").load()
