"""History comes in as it is, and deliveries that it settles become facts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sealane.pipeline.asking import read
from sealane.pipeline.facts.deliveries import facts_of, gathered, joined
from sealane.pipeline.facts.events import events_of, runs_of
from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import DELIVERIES, RAW_HISTORY, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.query import take_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "history"
STATES_KEPT = 2
"""A micro-batch that is done again begins with what the one before it has left."""


def take_in_history(spark: SparkSession, lake: Lake, settings: PipelineSettings) -> int:
    """Returns how many events came in. Messages come in first: what happens to one happens after it is there."""
    step = HistoryStep(spark, lake)
    return take_in(spark, lake, settings, NAME, step.take, log="history")


class HistoryStep:
    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake

    def take(self, rows: DataFrame, number: int) -> None:
        """One micro-batch, once, as often as it is called."""
        runs = runs_of(rows).selectExpr("*", "to_date(coalesce(time, current_timestamp())) AS date").persist()
        try:
            append_rows(self._lake, RAW_HISTORY, runs, writer=NAME, number=number)
            deliveries = self._deliveries(runs, number).persist()
            try:
                self._settle(deliveries, number)
                self._keep(deliveries, number)
            finally:
                deliveries.unpersist()
        finally:
            runs.unpersist()

    def _deliveries(self, runs: DataFrame, number: int) -> DataFrame:
        new = gathered(events_of(runs))
        before = self._state(number - 1)
        return joined(self._spark.read.parquet(str(before)), new) if before.exists() else new

    def _settle(self, deliveries: DataFrame, number: int) -> None:
        settled = deliveries.where("outcome IS NOT NULL")
        facts = facts_of(settled, self._messages_of(settled))
        append_rows(self._lake, DELIVERIES, facts, writer=NAME, number=number)

    def _messages_of(self, settled: DataFrame) -> DataFrame:
        """The messages among which those of the deliveries are: few files have them, and Parquet tells which."""
        from pyspark.sql import functions as f

        messages = read(self._spark, self._lake, RAW_MESSAGES)
        place = ("domain", "topic", "partition")
        spans = settled.groupBy(*place).agg(f.min("offset").alias("first"), f.max("offset").alias("last")).collect()
        if not spans:
            return messages.limit(0)
        within = " OR ".join(
            f"(domain = '{_quoted(span.domain)}' AND topic = '{_quoted(span.topic)}' AND partition = {span.partition}"
            f" AND offset BETWEEN {span['first']} AND {span['last']})"
            for span in spans
        )
        return messages.where(within)

    # --- what is under way --------------------------------------------------------------------------------------------

    def _state(self, number: int) -> Path:
        return self._lake.root / "state" / "deliveries" / f"{number:012d}"

    def _keep(self, deliveries: DataFrame, number: int) -> None:
        """Deliveries that are open are what the next micro-batch begins with."""
        deliveries.where("outcome IS NULL").write.mode("overwrite").parquet(str(self._state(number)))
        for path in self._state(number).parent.iterdir():
            if path.name.isdigit() and int(path.name) <= number - STATES_KEPT:
                shutil.rmtree(path, ignore_errors=True)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
