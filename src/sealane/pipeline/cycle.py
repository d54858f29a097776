"""One cycle of the pipeline after another, until somebody has enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sealane.log import get_log
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake
from sealane.pipeline.own_tables import refresh_own_tables
from sealane.pipeline.secrets.keeping import keys_of, keys_path
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.history import History
from sealane.pipeline.steps.history_source import history_ends
from sealane.pipeline.steps.messages import Messages
from sealane.pipeline.steps.typed import type_new
from sealane.pipeline.telling import Telling
from sealane.pipeline.tidying import Tidying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log("sealane.pipeline")

TIDY_SECONDS = 1.0
"""Of a cycle, before what is left of it waits for the next: a large table takes seconds, in which nothing comes in."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one has done."""

    messages: int
    events: int
    began: datetime
    """All that happened before is in the tables."""
    seconds: float


class Queries:
    """Those that a cycle takes in by. They stay from one to the next, until they are closed."""

    def __init__(self, spark: SparkSession, settings: PipelineSettings) -> None:
        lake = Lake(settings.lake)
        self.messages = Messages(spark, lake, settings)
        self.history = History(spark, lake, settings)

    def close(self) -> None:
        try:
            self.messages.close()
        finally:
            self.history.close()


def run_cycle(
    spark: SparkSession, settings: PipelineSettings, queries: Queries | None = None, tidying: Tidying | None = None
) -> Cycle:
    """Take in what there is now, and tidy up. Raises what stopped it; the next one goes on from there.

    Without `queries` it has its own, which end with it, and tidies all there is. With them and without `tidying`, no
    file that is in a table is taken away.
    """
    lake = Lake(settings.lake)
    if queries is None:
        with closing(Queries(spark, settings)) as queries:
            return run_cycle(spark, settings, queries, Tidying(lake, settings))
    began, now = time.monotonic(), datetime.now(UTC)
    keys = keys_of(lake, keys_path(settings))
    ends = history_ends(settings)  # What is journalled from here on may be about messages that are not taken in now.
    messages = queries.messages.take_in(keys).messages
    type_new(spark, lake, settings, keys)
    events = queries.history.take_in(ends) if lake.exists(RAW_MESSAGES) else 0
    refresh_own_tables(spark, lake)
    if tidying is not None:
        tidying.tidy(now.date())
    cycle = Cycle(messages, events, now, time.monotonic() - began)
    log.info("a cycle is done", messages=messages, events=events, seconds=round(cycle.seconds, 1))
    return cycle


def run(
    spark: SparkSession, settings: PipelineSettings, stop: threading.Event, told: Callable[[Cycle], None] | None = None
) -> None:
    """Cycles, `trigger_seconds` from the beginning of one to that of the next, until `stop` is set.

    Whoever stops it may stop the node too: a step that fails from then on is given up, and done again by the next run.
    """
    tidying = Tidying(Lake(settings.lake), settings, TIDY_SECONDS)
    with closing(Queries(spark, settings)) as queries, closing(Telling(spark, settings)) as telling:
        while not stop.is_set():
            try:
                cycle = run_cycle(spark, settings, queries, None if telling.is_under_way else tidying)
                telling.begin(cycle.began)
            except Exception as error:
                if not stop.is_set():
                    raise
                log.info("the step that was under way was given up", problem=type(error).__name__)
                return
            if told is not None:
                told(cycle)
            stop.wait(max(0.0, settings.trigger_seconds - cycle.seconds))
