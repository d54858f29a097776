"""The pipeline on a real node: what went through it is in the tables, once, and facts are those of an oracle."""

from __future__ import annotations

import dataclasses
import errno
import json
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealane
from sealane.pipeline import telling
from sealane.pipeline.cycle import Cycle, Queries, run, run_cycle
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.failing import LakeFull
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import ANOMALIES, DELIVERIES, QUARANTINE, RAW_HISTORY, RAW_MESSAGES, Lake, Table
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps import anomalies
from sealane.pipeline.steps.history import backfill_deliveries
from sealane.pipeline.tidying import Tidying
from sealane.testing.node_process import NodeProcess
from tests.spark.consuming import consume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

DEADLINE_SECONDS = 60.0


@pytest.fixture
def settings(node: NodeProcess, topic: str, tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(lake=tmp_path / "lake", topics=topic, url=node.url)


def rows(spark: SparkSession, settings: PipelineSettings, table: Table) -> list[Any]:
    return spark.read.parquet(str(Lake(settings.lake).path(table))).collect()


def test_messages_history_and_deliveries_are_in_the_tables_once(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    receipts = lane.publish_many(topic, [b"%d" % number for number in range(50)])
    consume(lane, topic, 30)
    first = run_cycle(spark, settings)
    assert first.messages == 50
    lane.publish_many(topic, [b"%d" % number for number in range(50, 60)])
    consume(lane, topic, 30)
    run_cycle(spark, settings)
    assert run_cycle(spark, settings).messages == 0
    assert sorted(row.offset for row in rows(spark, settings, RAW_MESSAGES)) == list(range(60))
    assert {row.payload for row in rows(spark, settings, RAW_MESSAGES)} == {None}
    assert {row.event for row in rows(spark, settings, RAW_HISTORY)} >= {"subscribed", "granted", "acked"}
    facts = rows(spark, settings, DELIVERIES)
    assert sorted(row.offset for row in facts) == list(range(60))
    assert {(row.outcome, row.attempts, row.subscription) for row in facts} == {("acked", 1, "billing")}
    assert all(row.bytes == len(b"%d" % row.offset) for row in facts)
    assert all(row.published <= row.first_granted <= row.settled for row in facts)
    ids = {row.offset: bytes(row.id) for row in facts}
    assert [ids[receipt.offset] for receipt in receipts] == [receipt.id.bytes for receipt in receipts]


def test_a_delivery_that_ends_in_a_later_cycle_is_one_fact(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    lane.publish(topic, b"hard")
    messages = iter(lane.consume(topic, "billing", retry=sealane.Retry("fixed", 0.0)))
    next(messages).nack(reason="not now")
    again = next(messages)
    run_cycle(spark, settings)
    assert not Lake(settings.lake).exists(DELIVERIES)
    again.ack(confirm=True)
    run_cycle(spark, settings)
    (fact,) = rows(spark, settings, DELIVERIES)
    assert (fact.outcome, fact.attempts, fact.reason) == ("acked", 2, "not now")


def test_deliveries_that_were_lost_are_computed_again_and_go_on(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    lane.publish_many(topic, [b"%d" % number for number in range(20)])
    consume(lane, topic, 10)
    run_cycle(spark, settings)
    lake = Lake(settings.lake)
    before = sorted(rows(spark, settings, DELIVERIES))
    for path in lake.files(DELIVERIES):
        path.unlink()
    assert backfill_deliveries(spark, lake) == 10
    assert backfill_deliveries(spark, lake) == 10
    assert sorted(rows(spark, settings, DELIVERIES)) == before
    consume(lane, topic, 10)
    run_cycle(spark, settings)
    assert sorted(row.offset for row in rows(spark, settings, DELIVERIES)) == list(range(20))

    # Files that were put together are read like those that Spark has written.
    whole = sorted(rows(spark, settings, DELIVERIES))
    assert compact(lake, DELIVERIES, small_files=2) is not None
    assert sorted(rows(spark, settings, DELIVERIES)) == whole


def test_queries_that_stay_find_partitions_and_schemas_that_came_meanwhile(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    lake = Lake(settings.lake)
    with closing(Queries(spark, settings)) as queries:
        lane.publish_many(topic, [b"%d" % number for number in range(10)])
        consume(lane, topic, 10)
        assert run_cycle(spark, settings, queries).messages == 10
        started = {query.runId for query in spark.streams.active}
        assert run_cycle(spark, settings, queries).messages == 0

        lane.configure_topic(topic, partitions=3)
        for number in range(10, 40):
            lane.publish(topic, b"%d" % number, key=b"%d" % number)
        assert all(at.end for at in lane.logs(topic)[0].partitions)
        consume(lane, topic, 30)
        assert run_cycle(spark, settings, queries).messages == 30
        assert {row.partition for row in rows(spark, settings, RAW_MESSAGES)} == {0, 1, 2}
        assert len(rows(spark, settings, DELIVERIES)) == 40
        assert {query.runId for query in spark.streams.active} == started
        assert not lake.exists(QUARANTINE)

        lane.administer("schema.register", topic=topic, schema=json.dumps({"type": "object"}), validate=False)
        lane.publish(topic, b"[]")
        assert run_cycle(spark, settings, queries).messages == 1
        assert len(rows(spark, settings, QUARANTINE)) == 1
        assert len(started & {query.runId for query in spark.streams.active}) == 1, "history has nothing to do with it"
    assert not spark.streams.active


def test_a_query_that_fails_is_told_and_the_next_one_goes_on(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.publish(topic, b"one")
    lake = Lake(settings.lake)
    with closing(Queries(spark, settings)) as queries:
        run_cycle(spark, settings, queries)
        lane.publish(topic, b"other")
        with monkeypatch.context() as patched:
            patched.setattr(TableLog, "commit", failing)
            with pytest.raises(LakeFull):
                run_cycle(spark, settings, queries)
    assert run_cycle(spark, settings).messages == 1
    assert len(rows(spark, settings, RAW_MESSAGES)) == 2
    assert not list(lake.root.glob("raw/messages/_staging/run-*"))


def test_what_the_tables_say_is_told_beside_the_cycles_and_to_its_end(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    lane.publish(topic, b"one")
    stop, cycles = threading.Event(), []

    def told(cycle: Cycle) -> None:
        cycles.append(cycle)
        if len(cycles) == 2:
            stop.set()

    run(spark, dataclasses.replace(settings, trigger_seconds=0.01), stop, told)
    assert [cycle.messages for cycle in cycles] == [1, 0]
    assert TableLog(Lake(settings.lake), ANOMALIES).last(anomalies.NAME) is not None


def test_nothing_is_taken_away_while_what_the_tables_say_is_told(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.publish(topic, b"one")
    stop, may_end, tidied = threading.Event(), threading.Event(), []
    monkeypatch.setattr(telling, "tell", lambda *_: may_end.wait(DEADLINE_SECONDS))
    monkeypatch.setattr(Tidying, "tidy", lambda *_: tidied.append(len(cycles)))
    cycles: list[Cycle] = []

    def told(cycle: Cycle) -> None:
        """The first one tidies, and then it is told what there is, until after the third."""
        lane.publish(topic, b"%d" % len(cycles))
        cycles.append(cycle)
        if len(cycles) == 3:
            may_end.set()
        if len(tidied) == 2:
            stop.set()

    run(spark, dataclasses.replace(settings, trigger_seconds=0.01), stop, told)
    assert tidied[0] == 0
    assert tidied[1] >= 3
    assert [cycle.messages for cycle in cycles[:3]] == [1, 1, 1]


def test_what_stops_the_telling_stops_the_pipeline(
    spark: SparkSession, settings: PipelineSettings, lane: SyncLane, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.publish(topic, b"one")
    monkeypatch.setattr(telling, "tell", failing)
    with pytest.raises(OSError, match="it is full"):
        run(spark, dataclasses.replace(settings, trigger_seconds=0.01), threading.Event())


def failing(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "it is full")
