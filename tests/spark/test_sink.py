"""DataFrames written to topics by a real Spark, as a reader of the topics sees them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealane
from sealane.errors import TopicNotFound
from sealane.security.envelopes import PrivateKey
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_of(lane: sealane.SyncLane, topic: str) -> list[dict[str, Any]]:
    """Everything that a topic holds, a partition after the other."""
    found: list[dict[str, Any]] = []
    for log in lane.logs(topic):
        for partition in log.partitions:
            position = partition.start
            while stored := lane.browse(topic, partition.partition, position):
                for part in stored:
                    found += part.batch.records.to_pylist()
                    position = part.stop
    return found


def payloads_of(lane: sealane.SyncLane, topic: str) -> list[bytes]:
    return [row["payload"] for row in rows_of(lane, topic)]


def write(rows: DataFrame, node: NodeProcess, **options: str) -> None:
    rows.write.format("sealane").mode("append").options(url=node.url, **options).save()


# --- batches ----------------------------------------------------------------------------------------------------------


def test_every_part_of_a_message_can_be_written(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    id, moment = uuid.uuid4(), datetime(2030, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    schema = (
        "id string, key string, body string, headers map<string,string>, priority int, created timestamp, "
        "expires timestamp, deliver_at timestamp"
    )
    row = (str(id), "customer", "text", {"region": "eu", "kind": "new"}, 9, moment, moment, None)
    write(spark.createDataFrame([row], schema), node, topic=topic, columns="payload=body")
    (found,) = rows_of(lane, topic)
    assert dict(found.pop("headers")) == {"region": "eu", "kind": "new"}
    assert found == {
        "id": id.bytes,
        "key": b"customer",
        "payload": b"text",
        "priority": 9,
        "created": moment,
        "expires": moment,
        "deliver_at": None,
        "envelope": None,
    }


def test_rows_go_to_the_topics_that_they_name(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    rows = spark.range(0, 3_000, 1, 3).selectExpr(
        "cast(id as string) payload", f"concat('{topic}-', id % 3) as topic", "cast(id % 7 as string) as key"
    )
    write(rows, node)
    for number in range(3):
        expected = sorted(b"%d" % value for value in range(number, 3_000, 3))
        assert sorted(payloads_of(lane, f"{topic}-{number}")) == expected


def test_an_empty_dataframe_writes_nothing_and_is_no_error(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    write(spark.createDataFrame([], "payload string"), node, topic=topic)
    with pytest.raises(TopicNotFound):
        lane.logs(topic)


def test_a_job_that_fails_leaves_nothing(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    lane.create_topic(topic)
    one_fails = "if(id = 39999, cast(raise_error('the last row') as string), cast(id as string)) as payload"
    rows = spark.range(0, 40_000, 1, 2).selectExpr(one_fails)
    with pytest.raises(Exception, match="the last row"):
        write(rows, node, topic=topic)
    assert payloads_of(lane, topic) == []


def test_a_transaction_is_written_once(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    rows = spark.range(0, 10, 1, 2).selectExpr("cast(id as string) payload")
    for partitions in (2, 1):
        write(rows.coalesce(partitions), node, topic=topic, transaction=f"load {topic}")
    assert sorted(payloads_of(lane, topic)) == [b"%d" % number for number in range(10)]


def test_payloads_are_sealed_for_their_recipients_before_they_leave_the_executor(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    key = PrivateKey.generate()
    recipient = f"reader-{uuid.uuid4().hex[:8]}"
    lane.register_key(key.public, recipient)
    write(spark.createDataFrame([("secret", "k")], "payload string, key string"), node, topic=topic, sealFor=recipient)
    (stored,) = rows_of(lane, topic)
    assert b"secret" not in stored["payload"]
    with lane.consume(topic, "reader", keys=key, auto_ack=True) as messages:
        message = next(iter(messages))
        assert (message.payload, message.key) == (b"secret", b"k")


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("payload string, amount int", {}, "'amount': no part of a message"),
        ("payload string", {"sealFor": "nobody-here"}, "nobody-here"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_job(
    spark: SparkSession, node: NodeProcess, topic: str, schema: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=told):
        write(spark.createDataFrame([], schema), node, topic=topic, **options)


def test_a_topic_cannot_be_overwritten(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    rows = spark.createDataFrame([("a",)], "payload string")
    with pytest.raises(Exception, match="use mode\\('append'\\)"):
        rows.write.format("sealane").mode("overwrite").options(url=node.url, topic=topic).save()


# --- streams ----------------------------------------------------------------------------------------------------------


def test_a_topic_streams_into_another_once_over_restarts(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str, tmp_path: Path
) -> None:
    lane.create_topic(topic, partitions=2)
    copy = f"{topic}-copy"
    sent = 0
    for _ in range(2):
        for _ in range(20):
            headers = {"n": str(sent)}
            lane.publish(topic, b"%d" % sent, key=b"k%d" % (sent % 5), headers=headers, priority=1 + sent % 10)
            sent += 1
        rows = spark.readStream.format("sealane").options(url=node.url, topic=topic, maxMessagesPerTrigger="15").load()
        query = (
            rows.writeStream.format("sealane")
            .options(url=node.url, topic=copy, checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
    shape = ("id", "key", "payload", "headers", "priority", "created", "expires", "deliver_at")
    original, copied = (
        sorted(([row[name] for name in shape] for row in rows_of(lane, name)), key=lambda row: int(row[2]))
        for name in (topic, copy)
    )
    assert len(original) == sent
    assert copied == original


def test_a_stream_has_no_transaction_of_the_user_s(
    spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    rows = spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "payload")
    query = (
        rows.writeStream.format("sealane")
        .options(url=node.url, topic=topic, transaction="mine", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="is for batches"):
        query.awaitTermination(60)
