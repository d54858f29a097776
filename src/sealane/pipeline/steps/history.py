"""History comes in as it is, and deliveries that it settles become facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.pipeline.asking import read
from sealane.pipeline.facts.deliveries import facts_of, gathered, joined
from sealane.pipeline.facts.events import events_of, runs_of
from sealane.pipeline.lake.appending import append_rows, replace_rows
from sealane.pipeline.lake.log import Step, TableLog
from sealane.pipeline.lake.tables import DELIVERIES, RAW_HISTORY, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.open_deliveries import OpenDeliveries
from sealane.pipeline.steps.query import take_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "history"
BACKFILL = "backfill"


def take_in_history(spark: SparkSession, lake: Lake, settings: PipelineSettings) -> int:
    """Returns how many events came in. Messages come in first: what happens to one happens after it is there."""
    step = HistoryStep(spark, lake)
    return take_in(spark, lake, settings, NAME, step.take, log="history")


def backfill_deliveries(spark: SparkSession, lake: Lake) -> int:
    """Compute the table again from all the history and messages that the lake has, and put that in its place.

    Returns how many rows it has. The next micro-batch goes on from there.
    """
    last = TableLog(lake, RAW_HISTORY).last(NAME)
    if last is None:
        return 0
    log = TableLog(lake, DELIVERIES)
    if log.find(NAME, last.number) is None:
        # Its history had come in when it was stopped. What it settles is computed here, and must not come again.
        log.commit(Step(writer=NAME, number=last.number, adds=[]))
    deliveries = gathered(events_of(read(spark, lake, RAW_HISTORY))).persist()
    try:
        replaced = replace_rows(lake, DELIVERIES, _facts(spark, lake, deliveries), writer=BACKFILL)
        OpenDeliveries(lake).keep(deliveries, last.number)
    finally:
        deliveries.unpersist()
    return replaced.rows


class HistoryStep:
    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._open = OpenDeliveries(lake)

    def take(self, rows: DataFrame, number: int) -> None:
        """One micro-batch, once, as often as it is called."""
        runs = runs_of(rows).selectExpr("*", "to_date(coalesce(time, current_timestamp())) AS date").persist()
        try:
            append_rows(self._lake, RAW_HISTORY, runs, writer=NAME, number=number)
            deliveries = self._deliveries(runs, number).persist()
            try:
                facts = _facts(self._spark, self._lake, deliveries)
                append_rows(self._lake, DELIVERIES, facts, writer=NAME, number=number)
                self._open.keep(deliveries, number)
            finally:
                deliveries.unpersist()
        finally:
            runs.unpersist()

    def _deliveries(self, runs: DataFrame, number: int) -> DataFrame:
        new = gathered(events_of(runs))
        before = self._open.left_by(self._spark, number - 1)
        return new if before is None else joined(before, new)


def _facts(spark: SparkSession, lake: Lake, deliveries: DataFrame) -> DataFrame:
    """Rows of the table, for those deliveries that are settled."""
    settled = deliveries.where("outcome IS NOT NULL")
    return facts_of(settled, _messages_of(spark, lake, settled))


def _messages_of(spark: SparkSession, lake: Lake, settled: DataFrame) -> DataFrame:
    """The messages among which those of the deliveries are: few files have them, and Parquet tells which."""
    from pyspark.sql import functions as f

    messages = read(spark, lake, RAW_MESSAGES)
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


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
