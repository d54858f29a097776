"""The proof: take in what there is, and reconcile it with where the node's subscriptions stand."""

from __future__ import annotations

from dataclasses import dataclass
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


def prove(spark: SparkSession, settings: PipelineSettings) -> Proof:
    """Where subscriptions stand is asked before their history is taken in: it tells at least as much then."""
    standing = _standing(settings)
    run_cycle(spark, settings)
    lake = Lake(settings.lake)
    if not lake.exists(RAW_MESSAGES) or not lake.exists(RAW_HISTORY):
        return Proof([], [])
    runs = read(spark, lake, RAW_HISTORY)
    found = reconcile(read(spark, lake, RAW_MESSAGES), _with_standing(spark, runs, standing))
    balance = found.balance.orderBy("domain", "topic", "partition", "subscription")
    problems = found.problems.orderBy("domain", "topic", "partition", "offset", "problem").limit(PROBLEMS_MAX)
    return Proof(_rows(balance), _rows(problems))


def _standing(settings: PipelineSettings) -> list[tuple[str, str, int, str, int]]:
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


def _with_standing(spark: SparkSession, runs: DataFrame, standing: list[tuple[str, str, int, str, int]]) -> DataFrame:
    told = spark.createDataFrame(standing, _STANDING_COLUMNS).selectExpr(
        "*",
        f"'{STANDING}' AS event",
        "CAST(0 AS BIGINT) AS first",
        # After all that the journal tells.
        f"CAST({2**62} AS BIGINT) AS entry",
    )
    return runs.unionByName(told, allowMissingColumns=True)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: shown(value) for name, value in row.asDict().items()} for row in frame.collect()]
