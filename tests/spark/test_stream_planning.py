"""What a streaming query does on the driver, step by step: how far to go, and in which tasks.

The node is a real one. Java is not needed: `test_stream_read.py` has Spark call the same methods.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows, ReadMinRows

from sealane.client.sync import SyncLane
from sealane.errors import TopicNotFound
from sealane.spark.errors import InvalidOption
from sealane.testing.node_process import NodeProcess
from tests.spark.micro_batches import EVERYTHING, Readers, numbers, offsets, publish, read, readers_of
from tests.sync.waiting import described


@pytest.fixture
def reader(node: NodeProcess, topic: str) -> Readers:
    return readers_of(node.url, topic)


def test_a_query_begins_where_its_options_say(lane: SyncLane, reader: Readers, topic: str) -> None:
    def begins(**options: str) -> dict[str, int]:
        query = reader(**options)
        start = query.initialOffset()
        return offsets(start or query.latestOffset(start, EVERYTHING), topic)

    lane.create_topic(topic)
    publish(lane, topic, range(5))
    moment = datetime.now(UTC)
    publish(lane, topic, range(5, 8))

    assert begins() == {"0": 0}
    assert begins(startingOffsets="latest") == {"0": 8}
    assert begins(startingOffsets='{"0": 3}') == {"0": 3}
    assert begins(startingTimestamp=moment.isoformat()) == {"0": 5}
    assert begins(startingTimestamp=datetime.now(UTC).isoformat()) == {"0": 8}
    with pytest.raises(InvalidOption, match="9 is beyond the end"):
        reader(startingOffsets='{"0": 9}').initialOffset()
    with pytest.raises(TopicNotFound):
        reader(topic="nothing-here").initialOffset()


@pytest.mark.parametrize("option", ["startingOffsets", "startingTimestamp"])
def test_a_query_begins_at_one_place_however_often_spark_asks_and_whatever_crashes(
    lane: SyncLane, reader: Readers, topic: str, option: str
) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(3))
    options = {
        option: "latest" if option == "startingOffsets" else datetime.now(UTC).isoformat(),
        "subscription": "etl",
    }
    first = reader(**options)
    nowhere = first.initialOffset()
    publish(lane, topic, [3, 4])
    start = first.latestOffset(first.initialOffset(), EVERYTHING)
    publish(lane, topic, [5])
    assert first.latestOffset(first.initialOffset(), EVERYTHING) == start
    assert read(first, nowhere, start) == []

    # The first micro-batch was not done yet: it is done again from the beginning, which Spark asks for once more.
    restarted = reader(**options)
    assert read(restarted, restarted.initialOffset(), start) == []
    assert described(lane, topic, "etl").depth == 3
    assert read(restarted, start, restarted.latestOffset(start, EVERYTHING)) == numbers(3, 4, 5)


def test_a_pattern_may_have_no_topic_yet(lane: SyncLane, reader: Readers, topic: str) -> None:
    query = reader(topic=f"{topic}-*", startingOffsets="latest")
    at = query.initialOffset()
    assert at == query.latestOffset(at, EVERYTHING) == {}
    lane.create_topic(f"{topic}-a")
    publish(lane, f"{topic}-a", [1])
    begun = query.latestOffset(at, EVERYTHING)
    assert read(query, begun, query.latestOffset(begun, EVERYTHING)) == numbers(1)


def test_the_first_message_is_read_and_none_twice_whoever_asks(lane: SyncLane, reader: Readers, topic: str) -> None:
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


def test_limits_of_spark_are_kept(lane: SyncLane, reader: Readers, topic: str) -> None:
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


def test_a_query_that_reads_what_there_is_now_ends_there(lane: SyncLane, reader: Readers, topic: str) -> None:
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
    lane: SyncLane, reader: Readers, topic: str
) -> None:
    lane.create_topic(f"{topic}-a")
    publish(lane, f"{topic}-a", [1])
    first = reader(topic=f"{topic}-*", startingOffsets="latest")
    at = first.latestOffset(first.initialOffset(), EVERYTHING)
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


def test_the_node_knows_the_query_as_a_subscription(lane: SyncLane, reader: Readers, topic: str) -> None:
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
    lane: SyncLane, reader: Readers, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    lane.create_topic(topic)
    publish(lane, topic, range(3))
    query = reader(subscription="etl")
    end = query.latestOffset(query.initialOffset(), EVERYTHING)
    lane.delete_topic(topic)

    query.commit(end)

    assert "a query's position could not be told to the node" in caplog.text
    assert "does not exist" in caplog.text
