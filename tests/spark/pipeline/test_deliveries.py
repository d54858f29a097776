"""Facts about deliveries: from history, exact."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sealane.pipeline.facts.deliveries import facts_of, gathered, joined
from sealane.pipeline.facts.delivery_runs import DELIVERY_RUNS, put_together, told_by
from sealane.pipeline.facts.events import events_of, runs_of
from sealane.pipeline.facts.views import dead_letters, traffic
from sealane.pipeline.steps.history_files import history_runs
from tests.spark.pipeline.told import START, Told, messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def facts(spark: SparkSession, told: Told, count: int = 10) -> dict[int, Any]:
    deliveries = gathered(events_of(runs_of(told.frame(spark)))).where("outcome IS NOT NULL")
    return {row.offset: row for row in facts_of(deliveries, messages(spark, count)).collect()}


def test_a_delivery_is_told_from_its_first_grant_to_its_ack(spark: SparkSession) -> None:
    told = Told()
    told.tell("subscribed", (0, 0))
    told.tell("granted", (0, 3), lease=1, consumer="anna")
    told.tell("acked", (0, 2), lease=1)
    told.tell("failed", (2, 3), lease=1, cause="nack", reason="no such customer")
    told.tell("granted", (2, 3), lease=2, consumer="bert")
    told.tell("acked", (2, 3), lease=2)
    found = facts(spark, told)
    assert sorted(found) == [0, 1, 2]
    first, last = found[0], found[2]
    assert (first.outcome, first.attempts, first.consumer, first.cause) == ("acked", 1, "anna", None)
    assert (first.latency_ms, first.bytes, bytes(first.id)) == (2000.0, 0, bytes(16))
    assert (last.outcome, last.attempts, last.consumer, last.reason) == ("acked", 2, "bert", "no such customer")
    assert last.first_granted.replace(tzinfo=UTC) == START + timedelta(seconds=1)
    assert last.latency_ms == 5000.0


@pytest.mark.parametrize("outcome", ["dead-lettered", "expired", "dropped"])
def test_whatever_ends_a_delivery_is_its_outcome(spark: SparkSession, outcome: str) -> None:
    told = Told()
    told.tell("granted", (0, 1), lease=1, consumer="anna")
    told.tell("failed", (0, 1), lease=1, cause="lease expired")
    told.tell(outcome, (0, 1), (5, 6))
    found = facts(spark, told)
    assert (found[0].outcome, found[0].attempts, found[0].cause) == (outcome, 1, "lease expired")
    assert (found[5].outcome, found[5].attempts, found[5].first_granted) == (outcome, 0, None)


def test_what_goes_back_unhandled_is_no_attempt(spark: SparkSession) -> None:
    told = Told()
    told.tell("granted", (0, 1), lease=1, consumer="anna")
    told.tell("released", (0, 1), lease=1)
    told.tell("granted", (0, 1), lease=2, consumer="bert")
    told.tell("acked", (0, 1), lease=2)
    assert facts(spark, told)[0].attempts == 1


def test_a_message_that_is_not_there_leaves_its_columns_empty(spark: SparkSession) -> None:
    told = Told()
    told.tell("granted", (20, 21), lease=1, consumer="anna")
    told.tell("acked", (20, 21), lease=1)
    found = facts(spark, told)[20]
    assert (found.id, found.published, found.latency_ms, found.outcome) == (None, None, None, "acked")


def test_traffic_is_counted_by_the_minute_with_its_depth(spark: SparkSession) -> None:
    told = Told()
    told.tell("granted", (0, 10), lease=1, consumer="anna")
    told.tell("acked", (0, 4), lease=1)
    told.tell("dead-lettered", (4, 5), time=START + timedelta(seconds=90))
    found = facts_of(gathered(events_of(runs_of(told.frame(spark)))).where("outcome IS NOT NULL"), messages(spark, 10))
    rows = traffic(messages(spark, 10), found).where("subscription IS NOT NULL").orderBy("minute").collect()
    assert [(row.published, row.settled, row.errors, row.depth) for row in rows] == [(10, 4, 0, 6), (0, 1, 1, 5)]
    assert (rows[0].bytes, rows[0].latency_p50_ms, rows[1].latency_p99_ms) == (45, 1000.0, 90_000.0)
    (dead,) = dead_letters(found).collect()
    assert (dead.messages, dead.redrive) == (1, "sealane dlq redrive default/orders billing")


@pytest.mark.parametrize("seed", range(3))
def test_in_any_number_of_steps_the_facts_are_those_of_an_oracle(spark: SparkSession, seed: int) -> None:
    told, expected = _random_history(random.Random(seed))
    choose = random.Random(seed)
    cuts = sorted(choose.sample(range(len(told.rows)), 3))
    under_way: DataFrame | None = None
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for first, stop in zip([0, *cuts], [*cuts, None], strict=True):
        new = gathered(events_of(runs_of(told.frame(spark, first, stop))))
        merged = (new if under_way is None else joined(under_way, new)).localCheckpoint()
        for row in merged.where("outcome IS NOT NULL").collect():
            assert (row.subscription, row.offset) not in found
            found[row.subscription, row.offset] = (row.outcome, row.grants, row.consumer)
        under_way = merged.where("outcome IS NULL")
    assert found == expected


def test_by_runs_of_offsets_deliveries_are_the_same(spark: SparkSession) -> None:
    told, _ = _random_history(random.Random(7))
    told.tell("granted", (100, 110), (120, 130), lease=1, consumer="anna")
    told.tell("failed", (105, 108), lease=1, cause="nack", reason="no such customer")
    told.tell("released", (121, 122), lease=1)
    told.tell("acked", (100, 106), (120, 121), lease=1)
    told.tell("acked", (104, 109), lease=2)
    history = told.frame(spark)
    names = [name for name in DELIVERY_RUNS.names if name not in ("first", "stop")]
    one_by_one = gathered(events_of(runs_of(history))).select("offset", *names).toArrow().to_pylist()
    by_runs = [
        {"offset": offset} | {name: row[name] for name in names}
        for row in put_together(told_by(history_runs(history.toArrow()))).to_pylist()
        for offset in range(row["first"], row["stop"])
    ]
    assert sorted(by_runs, key=repr) == sorted(one_by_one, key=repr)


def _random_history(choose: random.Random) -> tuple[Told, dict[tuple[str, int], tuple[Any, ...]]]:
    """Deliveries of two subscriptions, one message at a time, and what an oracle outside of Spark makes of them."""
    told = Told()
    attempts: dict[tuple[str, int], int] = defaultdict(int)
    outcome: dict[tuple[str, int], tuple[Any, ...]] = {}
    ready = [(name, offset) for name in ("billing", "audit") for offset in range(20)]
    lease = 0
    while ready:
        subscription, offset = ready.pop(choose.randrange(len(ready)))
        run, place, consumer = (offset, offset + 1), (subscription, offset), choose.choice(["anna", "bert"])
        lease += 1
        told.tell("granted", run, subscription=subscription, lease=lease, consumer=consumer)
        attempts[place] += 1
        match choose.choice(["acked", "acked", "failed", "released", "dead-lettered"]):
            case "failed":
                told.tell("failed", run, subscription=subscription, lease=lease, cause="nack")
                ready.append(place)
            case "released":
                told.tell("released", run, subscription=subscription, lease=lease)
                attempts[place] -= 1
                ready.append(place)
            case end:
                told.tell(end, run, subscription=subscription, lease=lease)
                outcome[place] = (end, attempts[place], consumer)
    return told, outcome
