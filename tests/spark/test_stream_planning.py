"""What a streaming query does on the driver, step by step: how far to go, in which tasks, and what is gone.

The node is a real one. Java is not needed: `test_stream_read.py` has Spark call the same methods.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

import sealane
from sealane.client.sync import SyncLane
from sealane.errors import TopicNotFound
from sealane.spark.data_source import SealaneDataSource
from sealane.spark.errors import DataLoss, InvalidOption, LogCutShort, Loss, NodeUnreachable, TopicRecreated
from sealane.spark.spark_types import spark_schema
from sealane.spark.stream_reader import StreamReader
from sealane.testing.node_process import NodeProcess
from tests.sync.waiting import eventually

EVERYTHING = ReadAllAvailable()


@pytest.fixture
def lane(node: NodeProcess) -> Iterator[SyncLane]:
    with sealane.connect_sync(node.url) as lane:
        yield lane


Reader = Callable[..., StreamReader]


@pytest.fixture
def reader(node: NodeProcess, topic: str) -> Reader:
    """A new one each time, as after a restart."""

    def make(**options: str) -> StreamReader:
        source = SealaneDataSource({"url": node.url, "topic": topic, **options})
        return source.streamReader(spark_schema())

    return make


def read(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    """What the tasks of a micro-batch read, each from a copy of the reader, as executors have it."""
    return [
        payload
        for task in reader.partitions(start, end)
        for batch in _copy(reader).read(_copy(task))
        for payload in batch.column("payload").to_pylist()
    ]


def _copy(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def numbers(*wanted: int) -> list[bytes]:
    return [b"%d" % number for number in wanted]


def publish(lane: SyncLane, topic: str, wanted: Sequence[int]) -> None:
    lane.publish_many(topic, numbers(*wanted))


def offsets(end: dict[str, Any], topic: str) -> dict[str, int]:
    return {name: offset for name, offset in end[f"default/{topic}"].items() if name != "incarnation"}


def test_a_query_begins_where_its_options_say(lane: SyncLane, reader: Reader, topic: str) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(5))
    moment = datetime.now(UTC)
    publish(lane, topic, range(5, 8))

    assert offsets(reader().initialOffset(), topic) == {"0": 0}
    assert offsets(reader(startingOffsets="latest").initialOffset(), topic) == {"0": 8}
    assert offsets(reader(startingOffsets='{"0": 3}').initialOffset(), topic) == {"0": 3}
    assert offsets(reader(startingTimestamp=moment.isoformat()).initialOffset(), topic) == {"0": 5}
    with pytest.raises(InvalidOption, match="9 is beyond the end"):
        reader(startingOffsets='{"0": 9}').initialOffset()
    with pytest.raises(TopicNotFound):
        reader(topic="nothing-here").initialOffset()


def test_a_query_begins_at_one_place_however_often_spark_asks(lane: SyncLane, reader: Reader, topic: str) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(3))
    latest = reader(startingOffsets="latest")
    start = latest.initialOffset()
    publish(lane, topic, [3, 4])
    end = latest.latestOffset(latest.initialOffset(), EVERYTHING)
    publish(lane, topic, [5])
    assert latest.initialOffset() == start
    assert read(latest, latest.initialOffset(), end) == numbers(3, 4)


def test_the_first_message_is_read_and_none_twice_whoever_asks(lane: SyncLane, reader: Reader, topic: str) -> None:
    lane.create_topic(topic)
    first = reader()
    start = first.initialOffset()
    assert first.latestOffset(start, EVERYTHING) == start
    publish(lane, topic, [1, 2])
    middle = first.latestOffset(start, EVERYTHING)
    assert read(first, start, middle) == numbers(1, 2)

    restarted = reader()  # It does the last micro-batch again, and then goes on.
    assert read(restarted, start, middle) == numbers(1, 2)
    publish(lane, topic, [3])
    end = restarted.latestOffset(middle, EVERYTHING)
    assert read(restarted, middle, end) == numbers(3)
    assert read(restarted, end, end) == []
    assert json.dumps(restarted.latestOffset(end, EVERYTHING)) == json.dumps(end)


def test_limits_of_spark_are_kept(lane: SyncLane, reader: Reader, topic: str) -> None:
    lane.create_topic(topic, partitions=2)
    publish(lane, topic, range(100))
    limited = reader(maxMessagesPerTrigger="30", minPartitions="4")
    start = limited.initialOffset()

    assert limited.getDefaultReadLimit() == ReadMaxRows(30)
    assert reader().getDefaultReadLimit() == EVERYTHING
    end = limited.latestOffset(start, ReadMaxRows(30))
    assert sum(offsets(end, topic).values()) == 30
    assert len(limited.partitions(start, end)) >= 4
    assert sum(offsets(limited.latestOffset(start, EVERYTHING), topic).values()) == 100
    assert limited.latestOffset(start, ReadMinRows(101)) == start
    assert sum(offsets(limited.latestOffset(start, ReadMinRows(100)), topic).values()) == 100
    reported = limited.reportLatestOffset()
    assert reported is not None
    assert sum(offsets(reported, topic).values()) == 100


def test_a_query_that_reads_what_there_is_now_ends_there(lane: SyncLane, reader: Reader, topic: str) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(10))
    ending = reader()
    at = ending.initialOffset()
    ending.prepareForTriggerAvailableNow()
    publish(lane, topic, range(10, 20))
    lane.configure_topic(topic, partitions=2)
    publish(lane, topic, range(20, 30))

    rounds = 0
    while (end := ending.latestOffset(at, ReadMaxRows(4))) != at:
        at, rounds = end, rounds + 1
    assert offsets(at, topic) == {"0": 10}
    assert rounds == 3


def test_partitions_and_topics_that_are_new_are_read_from_their_start(
    lane: SyncLane, reader: Reader, topic: str
) -> None:
    lane.create_topic(f"{topic}-a")
    publish(lane, f"{topic}-a", [1])
    first = reader(topic=f"{topic}-*", startingOffsets="latest")
    at = first.initialOffset()
    lane.configure_topic(f"{topic}-a", partitions=3)
    lane.create_topic(f"{topic}-b")
    for number in range(2, 8):
        lane.publish(f"{topic}-a", b"%d" % number)
    lane.publish(f"{topic}-b", b"8")

    restarted = reader(topic=f"{topic}-*")
    found: list[bytes] = []
    while (end := restarted.latestOffset(at, EVERYTHING)) != at:
        found += read(restarted, at, end)
        at = end
    assert sorted(found) == numbers(*range(2, 9))


def test_the_node_knows_the_query_as_a_subscription(lane: SyncLane, reader: Reader, topic: str) -> None:
    def depth() -> int:
        [subscription] = lane.describe_topic(topic).subscriptions
        assert subscription.name == "etl"
        return subscription.depth

    lane.create_topic(topic)
    publish(lane, topic, range(10))
    query = reader(subscription="etl")
    start = query.initialOffset()
    assert depth() == 10
    middle = query.latestOffset(start, ReadMaxRows(4))
    end = query.latestOffset(middle, EVERYTHING)
    assert depth() == 10
    query.commit(middle)
    assert depth() == 6
    assert query.latestOffset(end, EVERYTHING) == end  # Spark asks only when what was before is done.
    assert depth() == 0
    publish(lane, topic, range(5))
    assert depth() == 5


def test_a_hint_that_the_node_does_not_get_is_logged_and_no_more(
    lane: SyncLane, reader: Reader, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(3))
    query = reader(subscription="etl")
    end = query.latestOffset(query.initialOffset(), EVERYTHING)
    lane.delete_topic(topic)

    query.commit(end)

    assert "a query's position could not be told to the node" in caplog.text
    assert "does not exist" in caplog.text


# --- what is gone -----------------------------------------------------------------------------------------------------


def test_a_topic_that_was_made_again_is_noticed(lane: SyncLane, reader: Reader, topic: str) -> None:
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
    lane: SyncLane, reader: Reader, topic: str, caplog: pytest.LogCaptureFixture
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


def test_an_offset_beyond_the_log_is_another_log(lane: SyncLane, reader: Reader, topic: str) -> None:
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
    forgetful: NodeProcess, reader: Reader, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with sealane.connect_sync(forgetful.url) as lane:
        lane.create_topic(topic, retention_seconds=3600)
        publish(lane, topic, range(10))
        start = reader(url=forgetful.url).initialOffset()
        end = reader(url=forgetful.url).latestOffset(start, ReadMaxRows(8))
        lane.configure_topic(topic, retention_seconds=0)
        eventually(lambda: lane.logs(topic)[0].partitions[0].start == 10)
        lane.configure_topic(topic, retention_seconds=3600)
        publish(lane, topic, [10, 11])

    for ask in ("latestOffset", "partitions"):
        careful = reader(url=forgetful.url)
        with pytest.raises(DataLoss, match=r"partition 0 offsets \[0, 10\).*failOnDataLoss=false") as lost:
            careful.latestOffset(start, EVERYTHING) if ask == "latestOffset" else careful.partitions(start, end)
        assert lost.value.losses == (Loss(f"default/{topic}", 0, 0, 10),)
    assert caplog.text == ""

    careless = reader(url=forgetful.url, failOnDataLoss="false")
    assert read(careless, start, end) == []  # Spark does its last micro-batch again, whatever is left of it.
    rest = careless.latestOffset(end, ReadMaxRows(1))
    assert offsets(rest, topic) == {"0": 11}
    assert read(careless, end, rest) == numbers(10)
    assert caplog.text.count("messages are gone that were not read") == 2
    assert "partition 0 offsets [8, 10)" in caplog.text
    careless.latestOffset(end, EVERYTHING)
    assert caplog.text.count("messages are gone that were not read") == 2


def test_a_subscription_keeps_what_the_query_has_not_read(forgetful: NodeProcess, reader: Reader, topic: str) -> None:
    with sealane.connect_sync(forgetful.url) as lane:
        lane.create_topic(topic, retention_seconds=0)
        query = reader(url=forgetful.url, subscription="etl")
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
        source = SealaneDataSource({"url": node.url, "topic": topic, "retrySeconds": "0.5"})
        query = source.streamReader(spark_schema())
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
