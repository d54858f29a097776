"""Topics as streaming DataFrames: each message once, whatever is stopped, killed, or added meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from tests.sync.waiting import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DEADLINE_SECONDS = 180
"""Java takes its time to start beside other tests."""


def stream(spark: SparkSession, node: NodeProcess, **options: str | int) -> DataFrame:
    return spark.readStream.format("sealane").options(url=node.url, **options).load()


def drain(frame: DataFrame, directory: Path) -> StreamingQuery:
    """Write what there is now to Parquet, from where the last one ended."""
    writing = frame.writeStream.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    query = writing.start(str(directory / "rows"))
    assert query.awaitTermination(DEADLINE_SECONDS), "the query did not end in time"
    return query


def written(spark: SparkSession, directory: Path) -> list[bytes]:
    return sorted(bytes(row.payload) for row in spark.read.parquet(str(directory / "rows")).select("payload").collect())


def within_deadline(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds."""
    stop = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < stop, "it did not come to pass in time"
        time.sleep(0.05)


def numbers(wanted: range) -> list[bytes]:
    return sorted(b"%d" % number for number in wanted)


def test_a_query_goes_on_where_it_was_and_reads_each_message_once(
    spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path
) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic, partitions=2)
        lane.publish_many(topic, numbers(range(100)))
        options: dict[str, str | int] = {"topic": topic, "maxMessagesPerTrigger": 40, "subscription": "etl"}

        query = drain(stream(spark, node, **options), tmp_path)
        batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
        assert batches == [40, 40, 20]
        last = query.recentProgress[-1].sources[0]
        assert last.endOffset == last.latestOffset
        assert described(lane, topic, "etl").depth == 0
        assert written(spark, tmp_path) == numbers(range(100))

        # While nothing runs, messages and a partition are added.
        lane.configure_topic(topic, partitions=3)
        for number in range(100, 160):
            lane.publish(topic, b"%d" % number)
        assert lane.logs(topic)[0].partitions[2].end > 0
        assert described(lane, topic, "etl").depth == 60

        drain(stream(spark, node, **options), tmp_path)
        assert written(spark, tmp_path) == numbers(range(160))
        assert described(lane, topic, "etl").depth == 0

        idle = drain(stream(spark, node, **options), tmp_path)
        assert sum(progress.numInputRows for progress in idle.recentProgress) == 0


def test_a_running_query_finds_what_is_new_and_outlives_its_node(
    spark: SparkSession, own_node: NodeProcess, tmp_path: Path
) -> None:
    seen: list[bytes] = []

    def take(frame: DataFrame, batch: int) -> None:
        seen.extend(bytes(row.payload) for row in frame.select("payload").collect())

    def publish(topic: str, wanted: range) -> None:
        with sealane.connect_sync(own_node.url) as lane:
            for number in wanted:
                lane.publish(topic, b"%d" % number)

    def sees(wanted: range) -> None:
        within_deadline(lambda: query.exception() is not None or len(seen) >= len(wanted))
        assert query.exception() is None
        assert sorted(seen) == numbers(wanted)

    publish("shop-eu", range(100, 110))
    writing = stream(spark, own_node, topic="shop-*", startingOffsets="latest").writeStream.foreachBatch(take)
    query = writing.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    within_deadline(lambda: query.exception() is not None or query.lastProgress is not None)
    publish("shop-eu", range(10))
    sees(range(10))

    with sealane.connect_sync(own_node.url) as lane:
        lane.configure_topic("shop-eu", partitions=4)
    publish("shop-eu", range(10, 30))
    sees(range(30))

    publish("shop-us", range(30, 40))
    sees(range(40))

    own_node.kill()
    own_node.start()
    publish("shop-us", range(40, 50))
    sees(range(50))
    query.stop()


def test_an_error_of_the_source_ends_the_query_and_says_what_to_do(
    spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path
) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.publish(topic, b"old")
        drain(stream(spark, node, topic=topic), tmp_path)
        lane.delete_topic(topic)
        lane.publish(topic, b"new")

    with pytest.raises(Exception, match=r"was deleted and made again .* new checkpointLocation"):
        drain(stream(spark, node, topic=topic), tmp_path)
    with pytest.raises(Exception, match=r"option 'endingOffsets': is for batches"):
        drain(stream(spark, node, topic=topic, endingOffsets="latest"), tmp_path / "other")
    assert written(spark, tmp_path) == [b"old"]
