"""Messages come in as they are, but for phone numbers in keys and headers, which are hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.clean.rows import raw_rows
from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.query import take_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "messages"


def take_in_messages(spark: SparkSession, lake: Lake, settings: PipelineSettings, keys: LakeKeys) -> int:
    """Returns how many came in."""

    def take(rows: DataFrame, number: int) -> None:
        append_rows(lake, RAW_MESSAGES, raw_rows(rows, settings.bodies, keys), writer=NAME, number=number)

    return take_in(spark, lake, settings, NAME, take)
