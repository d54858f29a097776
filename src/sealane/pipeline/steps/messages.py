"""Messages come in as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake
from sealane.pipeline.settings import Bodies, PipelineSettings
from sealane.pipeline.steps.query import take_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "messages"


def take_in_messages(spark: SparkSession, lake: Lake, settings: PipelineSettings) -> int:
    """Returns how many came in."""

    def take(rows: DataFrame, number: int) -> None:
        append_rows(lake, RAW_MESSAGES, laid_out(rows, settings.bodies), writer=NAME, number=number)

    return take_in(spark, lake, settings, NAME, take)


def laid_out(messages: DataFrame, bodies: Bodies) -> DataFrame:
    """The rows of the table: with their length in any case, and their payload if it may be kept."""
    payload = "payload" if bodies == "plain" else "CAST(NULL AS BINARY) AS payload"
    others = [name for name in messages.columns if name != "payload"]
    return messages.selectExpr(*others, payload, "octet_length(payload) AS bytes", "to_date(created) AS date")
