"""What has happened to messages, as a DataFrame: `log=history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealane.spark.errors import InvalidOption
from sealane.spark.options.options import NOT_OF_HISTORY, read_options
from sealane.testing.node_process import NodeProcess
from tests.spark.consuming import consume

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sealane.client.sync import SyncLane


def offsets(frame: DataFrame, event: str) -> list[int]:
    rows = frame.where(f"event = '{event}'").selectExpr("explode(runs) AS run").selectExpr("run.first", "run.stop")
    return sorted(offset for row in rows.collect() for offset in range(row["first"], row["stop"]))


def test_grants_and_acks_of_every_message_are_rows(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str
) -> None:
    lane.publish_many(topic, [b"%d" % number for number in range(100)])
    consume(lane, topic, 100)
    found = spark.read.format("sealane").options(url=node.url, log="history").load(topic)
    assert offsets(found, "granted") == list(range(100))
    assert offsets(found, "acked") == list(range(100))
    (row,) = found.where("event = 'subscribed'").collect()
    assert (row.subscription, row.mode, row.domain, row.topic, row.partition) == (
        "billing",
        "queue",
        "default",
        topic,
        0,
    )
    assert found.where("event = 'granted' AND (consumer IS NULL OR time IS NULL OR until <= time)").count() == 0


def test_a_stream_goes_on_where_it_was(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str, tmp_path: Path
) -> None:
    def run() -> None:
        query = (
            spark.readStream.format("sealane")
            .options(url=node.url, topic=topic, log="history", maxMessagesPerTrigger=3)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(tmp_path / "table"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    lane.publish_many(topic, [b"%d" % number for number in range(40)])
    consume(lane, topic, 20)
    run()
    consume(lane, topic, 20)
    run()
    table = spark.read.parquet(str(tmp_path / "table"))
    assert offsets(table, "acked") == list(range(40))


@pytest.mark.parametrize("name", NOT_OF_HISTORY)
def test_options_of_messages_are_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match="log=history has no such option"):
        read_options({"url": "sealane://127.0.0.1:1", "topic": "t", "log": "history", name: "1"})


def test_another_log_than_there_is_is_refused() -> None:
    with pytest.raises(InvalidOption, match="messages, history"):
        read_options({"url": "sealane://127.0.0.1:1", "topic": "t", "log": "journal"})
