"""The proof: take in what there is, and reconcile it with where the node's subscriptions stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sealane
from sealane.pipeline.asking import read, shown
from sealane.pipeline.cycle import run_cycle
from sealane.pipeline.facts.reconciliation import reconcile
from sealane.pipeline.lake.tables import RAW_HISTORY, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROBLEMS_MAX = 100_000
"""What is named at once: whoever has more than that has seen enough."""
STANDING = "standing"

_STANDING_COLUMNS = "domain STRING, topic STRING, partition INT, subscription STRING, stop BIGINT"


@dataclass(frozen=True, slots=True)
class Proof:
    balance: list[dict[str, Any]]
    problems: list[dict[str, Any]]


Standing = tuple[str, str, int, str, int]
"""A subscription of a partition, and below which offset it has everything behind it."""


def prove(
    spark: SparkSession, settings: PipelineSettings, *, since: datetime | None = None, until: datetime | None = None
) -> Proof:
    """Where subscriptions stand is asked before their history is taken in: it tells at least as much then."""
    standing = _standing(settings)
    run_cycle(spark, settings)
    return prove_lake(spark, Lake(settings.lake), standing, since=since, until=until)


def prove_lake(
    spark: SparkSession,
    lake: Lake,
    standing: Sequence[Standing] = (),
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Proof:
    """The same of what the lake has now. What nobody says of a subscription is told by the last snapshot of it."""
    if not lake.exists(RAW_MESSAGES) or not lake.exists(RAW_HISTORY):
        return Proof([], [])
    runs = _with_standing(spark, read(spark, lake, RAW_HISTORY), standing)
    found = reconcile(read(spark, lake, RAW_MESSAGES), runs, since=since, until=until)
    try:
        balance = found.balance.orderBy("domain", "topic", "partition", "subscription")
        problems = found.problems.orderBy("domain", "topic", "partition", "offset", "problem").limit(PROBLEMS_MAX)
        return Proof(_rows(balance), _rows(problems))
    finally:
        found.release()


def _standing(settings: PipelineSettings) -> list[Standing]:
    """Below which offset each subscription has everything behind it, by the node's own word."""
    with sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane:
        found = []
        for log in lane.logs(*(name.strip() for name in settings.topics.split(","))):
            domain, _, topic = log.name.partition("/")
            for subscription in lane.describe_topic(log.name).subscriptions:
                found += [
                    (domain, topic, partition, subscription.name, floor)
                    for partition, floor in subscription.positions.items()
                ]
    return found


def _with_standing(spark: SparkSession, runs: DataFrame, standing: Sequence[Standing]) -> DataFrame:
    told = spark.createDataFrame(list(standing), _STANDING_COLUMNS).selectExpr(
        "*",
        f"'{STANDING}' AS event",
        "CAST(0 AS BIGINT) AS first",
        # After all that the journal tells.
        f"CAST({2**62} AS BIGINT) AS entry",
    )
    return runs.unionByName(told, allowMissingColumns=True)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: shown(value) for name, value in row.asDict().items()} for row in frame.collect()]
