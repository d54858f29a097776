"""Bins that are complete are scored, each once, and what is found is recorded."""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from sealane.pipeline.anomalies.anomaly import Anomaly
from sealane.pipeline.anomalies.baseline import HISTORY_DAYS
from sealane.pipeline.anomalies.contributing import with_contributions
from sealane.pipeline.anomalies.detecting import LOOK_BACK_BINS
from sealane.pipeline.anomalies.kept_bins import bins_until
from sealane.pipeline.anomalies.measures import BIN_SECONDS, BINS_A_DAY
from sealane.pipeline.anomalies.rows import read_rows, write_rows
from sealane.pipeline.anomalies.watching import watch, watch_usage
from sealane.pipeline.asking import read
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import ANOMALIES, DELIVERIES, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "anomalies"
GRACE_SECONDS = 60
"""A bin is complete so long after its end: clocks differ, and what is created last is settled a moment later."""
FIRST_BINS = BINS_A_DAY
"""What is scored when nothing was yet: the last day, since nobody wants to be woken for what is older."""


def refresh_anomalies(
    spark: SparkSession,
    lake: Lake,
    settings: PipelineSettings,
    *,
    now: datetime | None = None,
    since: datetime | None = None,
    usage: DataFrame | None = None,
) -> list[Anomaly]:
    """Score what is complete and was not scored, and record what is found, exactly once. Returns the new anomalies.

    `now` is a time up to which all is in the tables: when the cycle that took it in began. `since` is where to begin in
    a lake in which nothing was scored, if not a day ago. The step's number is the bin before which all is scored, so
    the table's log is the one note of how far this is. `usage` tells how full topics or disks are, if anybody knows:
    rows of `domain`, `topic`, `time` and `share`.
    """
    if not lake.exists(RAW_MESSAGES):
        return []
    log = TableLog(lake, ANOMALIES)
    last = log.last(NAME)
    if last is not None:
        log.carry_out(last)  # Whoever was killed between a record and its moves is finished first.
    stop = _bin((time.time() if now is None else now.timestamp()) - GRACE_SECONDS)
    first = stop - FIRST_BINS if since is None else _bin(since.timestamp())
    begin = first if last is None else last.number
    if begin >= stop:
        return []
    bins = bins_until(spark, lake, (begin - LOOK_BACK_BINS) // BINS_A_DAY - HISTORY_DAYS, stop)
    found = watch(spark, bins, begin, stop)
    if usage is not None:
        found += watch_usage(usage, begin, stop)
    if found:
        deliveries = read(spark, lake, DELIVERIES) if lake.exists(DELIVERIES) else None
        found = with_contributions(spark, found, read(spark, lake, RAW_MESSAGES), deliveries)
    append(lake, ANOMALIES, partial(write_rows, anomalies=found), writer=NAME, number=stop)
    return found


def recorded_anomalies(lake: Lake) -> list[Anomaly]:
    """All that was ever found, in the order of their beginnings."""
    return read_rows(lake)


def _bin(seconds: float) -> int:
    return int(seconds // BIN_SECONDS)
