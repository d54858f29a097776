"""What a query was to read and cannot: messages, topics and nodes that are gone, named, and told what to do about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows

import sealane
from sealane.client.sync import SyncLane
from sealane.errors import TopicNotFound
from sealane.spark.errors import DataLoss, LogCutShort, Loss, NodeUnreachable, TopicRecreated
from sealane.testing.node_process import NodeProcess
from tests.spark.micro_batches import EVERYTHING, Readers, numbers, offsets, publish, read, readers_of
from tests.sync.waiting import eventually


@pytest.fixture
def reader(node: NodeProcess, topic: str) -> Readers:
    return readers_of(node.url, topic)


def test_a_topic_that_was_made_again_is_noticed(lane: SyncLane, reader: Readers, topic: str) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(3))
    query = reader()
    start = query.initialOffset()
    end = query.latestOffset(start, EVERYTHING)
    tasks = query.partitions(start, end)
    lane.delete_topic(topic)
    with pytest.raises(TopicNotFound):
        query.latestOffset(end, EVERYTHING)

    lane.create_topic(topic)
    publish(lane, topic, range(9))

    for careless in ("true", "false"):
        restarted = reader(failOnDataLoss=careless)
        with pytest.raises(TopicRecreated, match="new checkpointLocation"):
            restarted.latestOffset(end, EVERYTHING)
        with pytest.raises(TopicRecreated):
            restarted.partitions(start, end)
    with pytest.raises(TopicRecreated):
        list(query.read(tasks[0]))


def test_a_topic_of_a_pattern_that_is_gone_is_an_error_or_left_behind(
    lane: SyncLane, reader: Readers, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        lane.create_topic(f"{topic}-{name}")
        publish(lane, f"{topic}-{name}", [1])
    at = reader(topic=f"{topic}-*").initialOffset()
    lane.delete_topic(f"{topic}-a")

    with pytest.raises(TopicNotFound, match=f"{topic}-a.*failOnDataLoss=false"):
        reader(topic=f"{topic}-*").latestOffset(at, EVERYTHING)
    careless = reader(topic=f"{topic}-*", failOnDataLoss="false")
    end = careless.latestOffset(at, EVERYTHING)
    assert read(careless, at, end) == numbers(1)
    assert caplog.text.count("a topic is gone") == 1


def test_an_offset_beyond_the_log_is_another_log(lane: SyncLane, reader: Readers, topic: str) -> None:
    lane.create_topic(topic)
    at = reader().initialOffset()
    at[f"default/{topic}"]["0"] = 5
    with pytest.raises(LogCutShort):
        reader().latestOffset(at, EVERYTHING)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node that lets go of messages soon."""
    with NodeProcess(tmp_path_factory.mktemp("forgetful") / "data", {"node.retention_check_seconds": 0.02}) as node:
        yield node


def test_what_retention_took_is_an_error_or_a_warning_that_names_the_offsets(
    forgetful: NodeProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    forgetting = readers_of(forgetful.url, topic)
    with sealane.connect_sync(forgetful.url) as lane:
        lane.create_topic(topic, retention_seconds=3600)
        publish(lane, topic, range(10))
        start = forgetting().initialOffset()
        end = forgetting().latestOffset(start, ReadMaxRows(8))
        lane.configure_topic(topic, retention_seconds=0)
        eventually(lambda: lane.logs(topic)[0].partitions[0].start == 10)
        lane.configure_topic(topic, retention_seconds=3600)
        publish(lane, topic, [10, 11])

    for ask in ("latestOffset", "partitions"):
        careful = forgetting()
        with pytest.raises(DataLoss, match=r"partition 0 offsets \[0, 10\).*failOnDataLoss=false") as lost:
            careful.latestOffset(start, EVERYTHING) if ask == "latestOffset" else careful.partitions(start, end)
        assert lost.value.losses == (Loss(f"default/{topic}", 0, 0, 10),)
    assert caplog.text == ""

    careless = forgetting(failOnDataLoss="false")
    assert read(careless, start, end) == []  # Spark does its last micro-batch again, whatever is left of it.
    rest = careless.latestOffset(end, ReadMaxRows(1))
    assert offsets(rest, topic) == {"0": 11}
    assert read(careless, end, rest) == numbers(10)
    assert caplog.text.count("messages are gone that were not read") == 2
    assert "partition 0 offsets [8, 10)" in caplog.text
    careless.latestOffset(end, EVERYTHING)
    assert caplog.text.count("messages are gone that were not read") == 2


def test_a_subscription_keeps_what_the_query_has_not_read(forgetful: NodeProcess, topic: str) -> None:
    forgetting = readers_of(forgetful.url, topic)
    with sealane.connect_sync(forgetful.url) as lane:
        lane.create_topic(topic, retention_seconds=0)
        query = forgetting(subscription="etl")
        start = query.initialOffset()
        publish(lane, topic, range(10))
        middle = query.latestOffset(start, ReadMaxRows(4))
        query.commit(middle)
        eventually(lambda: lane.logs(topic)[0].partitions[0].start == 4)
        end = query.latestOffset(middle, EVERYTHING)
        assert read(query, middle, end) == numbers(*range(4, 10))


def test_a_node_that_stays_away_is_named_with_the_place_that_was_to_be_read(tmp_path: Path, topic: str) -> None:
    with NodeProcess(tmp_path / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(topic)
            publish(lane, topic, range(3))
        query = readers_of(node.url, topic)(retrySeconds="0.5")
        start = query.initialOffset()
        end = query.latestOffset(start, EVERYTHING)
        tasks: Sequence[InputPartition] = query.partitions(start, end)
        node.kill()

        with pytest.raises(NodeUnreachable) as planning:
            query.latestOffset(end, EVERYTHING)
        with pytest.raises(NodeUnreachable) as reading:
            list(query.read(tasks[0]))
        assert node.doors["native"] in str(planning.value)
        assert topic in str(planning.value)
        for word in (node.doors["native"], f"default/{topic}", "partition 0", "offset"):
            assert word in str(reading.value)

        node.start()
        assert query.latestOffset(end, EVERYTHING) == end
        assert [len(batch) for batch in query.read(tasks[0])] == [3]
