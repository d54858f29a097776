"""Topics as DataFrames: every message once, with all that is known of it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import sealane
from sealane.client.profiles import read_profile
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sealane.client.sync import SyncLane

COLUMNS = [
    *("id", "key", "payload", "headers", "priority", "created", "expires", "deliver_at"),
    *("producer", "domain", "topic", "partition", "offset"),
]


def read(spark: SparkSession, node: NodeProcess, **options: str | int) -> DataFrame:
    return spark.read.format("sealane").options(url=node.url, **options).load()


def payloads(frame: DataFrame) -> list[bytes]:
    """In the order of their text: rows have none."""
    return sorted(bytes(row.payload) for row in frame.select("payload").collect())


def numbers(*ranges: range) -> list[bytes]:
    return sorted(b"%d" % number for each in ranges for number in each)


def test_every_column_of_a_message_is_a_column_of_its_row(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str
) -> None:
    before = datetime.now(UTC)
    lane.create_topic(topic)
    given = uuid.uuid4()
    lane.publish(
        topic, b"all", key=b"42", headers={"region": "eu", "": "\u00e9"}, priority=9, ttl=60, delay=30, id=given
    )
    generated = lane.publish(topic, b"")
    lane.publish(topic, b"expired", ttl=0.000_001)

    table: pa.Table = read(spark, node, topic=topic).orderBy("offset").toArrow()
    after = datetime.now(UTC)

    assert table.column_names == COLUMNS
    full, plain, expired = table.to_pylist()
    assert (full["id"], full["key"], full["payload"]) == (given.bytes, b"42", b"all")
    assert dict(full["headers"]) == {"region": "eu", "": "\u00e9"}
    assert full["priority"] == 9
    assert before <= full["created"] <= after
    assert before <= full["expires"] - timedelta(seconds=60) <= after
    assert before <= full["deliver_at"] - timedelta(seconds=30) <= after
    assert (full["domain"], full["topic"], full["partition"], full["offset"]) == ("default", topic, 0, 0)
    assert (plain["id"], plain["payload"], plain["priority"], plain["offset"]) == (generated.id.bytes, b"", 5, 1)
    assert [plain[name] for name in ("key", "headers", "expires", "deliver_at")] == [None] * 4
    assert (expired["payload"], expired["offset"]) == (b"expired", 2)
    assert expired["expires"] < after
    assert isinstance(plain["producer"], bytes)


def test_ranges_take_in_exactly_what_they_say(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str
) -> None:
    lane.create_topic(topic, partitions=3)
    lane.publish_many(topic, numbers(range(700)))
    between = datetime.now(UTC)
    for number in range(700, 900):
        lane.publish(topic, b"%d" % number)
    everything = numbers(range(900))

    split = read(spark, node, topic=topic, minPartitions=7)
    assert split.rdd.getNumPartitions() >= 7
    assert payloads(split) == everything

    early = payloads(read(spark, node, topic=topic, endingTimestamp=between.isoformat()))
    late = payloads(read(spark, node, topic=topic, startingTimestamp=between.isoformat()))
    assert early == numbers(range(700))
    assert late == numbers(range(700, 900))

    [log] = lane.logs(topic)
    middle = {str(at.partition): (at.start + at.end) // 2 for at in log.partitions}
    offsets = str(middle).replace("'", '"')
    first = read(spark, node, topic=topic, endingOffsets=offsets)
    second = read(spark, node, topic=topic, startingOffsets=f'{{"{topic}": {offsets}}}')
    assert sorted(payloads(first) + payloads(second)) == everything
    assert {
        row.partition: row.ends
        for row in first.groupBy("partition").agg({"offset": "max"}).withColumnRenamed("max(offset)", "ends").collect()
    } == {int(partition): offset - 1 for partition, offset in middle.items()}


def test_lists_and_patterns_read_several_topics_and_an_empty_topic_is_an_empty_frame(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str
) -> None:
    domain = topic[-12:]
    for name in ("eu-1", "eu-2", "us-1", "empty"):
        lane.create_topic(f"{domain}/{name}")
    for name in ("eu-1", "eu-2", "us-1"):
        lane.publish(f"{domain}/{name}", name.encode())

    empty = read(spark, node, topic=f"{domain}/empty")
    assert (empty.columns, empty.collect()) == (COLUMNS, [])
    assert payloads(read(spark, node, topic=f"{domain}/eu-*")) == [b"eu-1", b"eu-2"]
    assert payloads(read(spark, node, topic=f"{domain}/*")) == [b"eu-1", b"eu-2", b"us-1"]
    assert payloads(read(spark, node, topic=f"{domain}/us-1,{domain}/eu-1")) == [b"eu-1", b"us-1"]
    loaded = spark.read.format("sealane").option("url", node.url).load(f"{domain}/us-1")
    assert payloads(loaded) == [b"us-1"]
    by_sql = spark.sql(f"SELECT count(*) AS n FROM {{frame}} WHERE domain = '{domain}'", frame=loaded)
    assert by_sql.collect()[0].n == 1


def test_what_cannot_be_read_is_said_before_any_job_starts(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str
) -> None:
    lane.create_topic(topic)
    lane.publish(topic, b"one")
    spark.sparkContext.setJobGroup(topic, "wrong options")

    def refusal(**options: str) -> str:
        with pytest.raises(Exception) as refused:  # noqa: PT011 - Spark has several, and the text is what counts
            read(spark, node, **{"topic": topic, **options}).collect()
        return str(refused.value)

    try:
        assert "option 'startingofset': there is no such option; did you mean 'startingOffsets'?" in refusal(
            startingOfset="latest"
        )
        assert "topic 'default/nothing-here' does not exist" in refusal(topic="nothing-here")
        assert "option 'startingOffsets': 2 is beyond the end" in refusal(startingOffsets='{"0": 2}')
        assert "option 'subscription': is for streams" in refusal(subscription="etl")
        assert "option 'columns': is for writing" in refusal(columns="payload=x")
        with pytest.raises(Exception, match=r"option 'schema': .* leave `schema` out"):
            spark.read.format("sealane").schema("id INT").options(url=node.url, topic=topic).load().collect()
        assert spark.sparkContext.statusTracker().getJobIdsForGroup(topic) == []
        assert read(spark, node, topic=topic).count() == 1
        assert spark.sparkContext.statusTracker().getJobIdsForGroup(topic) != []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")


def test_the_principal_needs_the_grant(spark: SparkSession, secure_node: NodeProcess, topic: str) -> None:
    with sealane.connect_sync(profile=secure_node.profile) as admin:
        admin.create_topic(f"shop/{topic}")
        admin.publish(f"shop/{topic}", b"private")
        key = admin.administer("key.create", account=f"job-{topic[-12:]}", domain="shop", roles=[])["key"]
        reading = spark.read.format("sealane").options(
            url=secure_node.url, ca=read_profile(secure_node.profile).ca, key=key, topic=topic
        )
        with pytest.raises(Exception, match=f"may not consume 'shop/{topic}'"):
            reading.load().collect()

        admin.administer("grant.add", subject=f"job-{topic[-12:]}", action="consume", pattern=f"shop/{topic}")
        assert payloads(reading.load()) == [b"private"]
