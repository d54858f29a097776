"""History comes in as it is, and deliveries that it settles become facts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sealane.pipeline.asking import read
from sealane.pipeline.facts.deliveries import facts_of, gathered
from sealane.pipeline.facts.delivery_runs import DELIVERY_RUNS, put_together, told_by
from sealane.pipeline.facts.events import events_of
from sealane.pipeline.lake.appending import append, replace_rows
from sealane.pipeline.lake.log import Step, TableLog
from sealane.pipeline.lake.tables import DELIVERIES, RAW_HISTORY, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.fact_files import FactPiece, count_of, pieces_of
from sealane.pipeline.steps.history_files import history_runs, write_history
from sealane.pipeline.steps.history_source import history_stream
from sealane.pipeline.steps.kept_query import KeptQuery, access_of
from sealane.pipeline.steps.open_deliveries import OpenDeliveries
from sealane.pipeline.steps.query import StandingQuery
from sealane.pipeline.steps.staged import Destination, Moving, forget_runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sealane.spark.source.planning.offsets import Positions

NAME = "history"
BACKFILL = "backfill"
LOCAL_DELIVERIES = 50_000
"""So many are made here: starting a job of Spark's would take longer."""
TASKS_AT_ONCE = 2
"""For each core: none is left with much at the end."""


class History:
    """Takes it in, by a query that stays as long as it would be the same query."""

    def __init__(self, spark: SparkSession, lake: Lake, settings: PipelineSettings) -> None:
        self._spark = spark
        self._lake = lake
        self._settings = settings
        self._kept = KeptQuery()
        self._step = HistoryStep(spark, lake)

    def take_in(self, ends: Positions) -> int:
        """Returns how many events came in: those before `ends`. Whoever takes in messages in between finds each message
        there that these events are about.
        """
        from sealane.spark.source.planning.offsets import to_json

        before = self._step.events
        self._kept.query(access_of(self._settings), self._open).take_in(to_json(ends))
        return self._step.events - before

    def close(self) -> None:
        self._kept.close()

    def _open(self) -> StandingQuery:
        stream_of = partial(history_stream, self._spark, self._settings)
        return StandingQuery(stream_of, self._lake, NAME, self._step.take)


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
        OpenDeliveries(lake).keep(_as_runs(deliveries.where("outcome IS NULL")), last.number)
    finally:
        deliveries.unpersist()
    return replaced.rows


class HistoryStep:
    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._open = OpenDeliveries(lake)
        self.events = 0
        """That have come in."""

    def take(self, rows: DataFrame, number: int) -> None:
        """One micro-batch, once, as often as it is called.

        History comes here as runs of offsets, which are few beside the messages they are about; tasks make a row of
        each message.
        """
        events = rows.toArrow()
        runs = history_runs(events)
        append(self._lake, RAW_HISTORY, partial(write_history, runs), writer=NAME, number=number)
        before = self._open.left_by(number - 1)
        deliveries = put_together(told_by(runs), *([] if before is None else [before]))
        append(self._lake, DELIVERIES, partial(self._write_facts, deliveries), writer=NAME, number=number)
        self._open.keep(deliveries, number)
        self.events += len(events)

    def _write_facts(self, deliveries: pa.Table, staging: Path) -> None:
        forget_runs(self._lake, [DELIVERIES])
        destination = Destination.new(self._lake)
        settled = deliveries.filter(deliveries["outcome"].is_valid())
        pieces = list(pieces_of(settled, self._lake, destination))
        if count_of(settled) <= LOCAL_DELIVERIES:
            paths = [path for piece in pieces for path in piece.write()]
        else:
            context = self._spark.sparkContext
            tasks = context.parallelize(pieces, min(len(pieces), TASKS_AT_ONCE * context.defaultParallelism))
            paths = tasks.flatMap(FactPiece.write).collect()
        Moving(destination.directory(DELIVERIES), paths, {})(staging)
        forget_runs(self._lake, [DELIVERIES])


def _facts(spark: SparkSession, lake: Lake, deliveries: DataFrame) -> DataFrame:
    """Rows of the table, for those deliveries that are settled."""
    settled = deliveries.where("outcome IS NOT NULL")
    return facts_of(settled, _messages_of(spark, lake, settled))


def _as_runs(deliveries: DataFrame) -> pa.Table:
    """Deliveries one by one, as runs of one."""
    runs = deliveries.selectExpr("*", "offset AS first", "offset + 1 AS stop").select(*DELIVERY_RUNS.names)
    return runs.toArrow().cast(DELIVERY_RUNS)


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
