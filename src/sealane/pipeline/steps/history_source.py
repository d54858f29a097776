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


def history_stream(spark: SparkSession, settings: PipelineSettings, gate: str) -> DataFrame:
    """A stream that goes as far as it is let through this gate."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from sealane.pipeline.steps.gated_reader import GatedReader
    from sealane.spark.options.options import read_options
    from sealane.spark.source.spark_types import history_columns

    class HistorySource(DataSource):
        """It travels by value, with the gate in it."""

        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return history_columns()

        def streamReader(self, schema: StructType) -> GatedReader:  # noqa: N802 - as Spark calls it
            return GatedReader(read_options(dict(self.options.items()), is_stream=True), gate)

    spark.dataSource.register(HistorySource)
    return spark.readStream.format(NAME).options(**settings.source, log="history").load()
