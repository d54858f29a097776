"""One answer says how a node is doing, and it travels."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from sealane._version import __version__
from sealane.delivery.config import SubscriptionConfig
from sealane.errors import StorageFull
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus, health, node_status
from tests.unit.node.running_node import DEADLINE_SECONDS, Running, running_node, until


async def consume_some(running: Running, count: int) -> None:
    """Take that many, and leave them leased."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for batch in running.lane.consume_batches("orders", subscription="billing", messages_max=count):
            assert len(batch) == count
            break


async def test_it_tells_of_the_node_and_of_each_topic_and_subscription() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x" * 100] * 10)
        running.node.measures.connections["native"] = lambda: 3
        running.clock.pass_seconds(7)
        await consume_some(running, 10)

        status = node_status(running.node)

    assert (status.version, status.engine) == (__version__, "memory")
    assert status.uptime_seconds == 7.0
    assert status.connections == {"native": 3}
    assert (status.live, status.ready, status.problems) == (True, True, [])
    assert (status.topics_total, status.messages_total, status.published_total) == (1, 10, 10)
    assert status.published_per_second > 0
    assert status.memory_bytes is not None
    assert status.memory_bytes > 10_000_000
    assert status.open_files is not None
    assert status.open_files > 3
    (topic,) = status.topics
    assert (topic.name, topic.partitions, topic.messages, topic.depth) == ("default/orders", 1, 10, 10)
    assert topic.bytes == pytest.approx(topic.published_bytes_total, rel=0.1)
    (billing,) = topic.subscriptions
    assert (billing.name, billing.mode) == ("billing", "queue")
    assert (billing.depth, billing.leased, billing.delivered_total) == (10, 10, 10)
    assert billing.oldest_seconds == 7.0


async def test_what_the_node_writes_for_itself_is_not_counted_as_published() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"1", b"2"])
        async with running.lane.transaction("once") as transaction:
            await transaction.publish("orders", b"3")
        assert any(topic.is_system for topic in running.node.topics.values())

        status = node_status(running.node)

    assert (status.published_total, status.messages_total) == (3, 3)


async def test_a_subscription_with_nothing_to_do_has_no_oldest_message() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        async for message in running.lane.consume("orders", subscription="billing"):
            await message.ack(confirm=True)
            break
        await until(lambda: not running.node.topic("orders").attachments)

        (billing,) = node_status(running.node).topics[0].subscriptions

    assert (billing.depth, billing.oldest_seconds, billing.acked_total, billing.consumers) == (0, None, 1, 0)


async def test_the_deepest_topics_come_first_and_no_more_than_asked_for() -> None:
    async with running_node() as running:
        for name, count in (("shallow", 1), ("deep", 9), ("middle", 5)):
            await running.lane.create_topic(name)
            await running.node.subscribe(running.node.topic(name), "s", SubscriptionConfig(), "earliest")
            await running.lane.publish_many(name, [b"x"] * count)

        def names(limit: int) -> list[str]:
            return [topic.name.removeprefix("default/") for topic in node_status(running.node, topics_max=limit).topics]

        assert names(STATUS_TOPICS_MAX) == ["deep", "middle", "shallow"]
        assert names(2) == ["deep", "middle"]
        assert names(0) == []
        assert node_status(running.node, topics_max=2).topics_total == 3


async def test_it_comes_back_from_msgpack_as_it_was() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        status = node_status(running.node)

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(status), type=NodeStatus) == status


async def test_a_full_engine_is_ready_for_those_who_make_room() -> None:
    async with running_node() as running:
        usage = running.node.engine.usage()
        full = str(StorageFull(100, 100))
        running.node.engine.usage = lambda: type(usage)(100, 100, full)  # type: ignore[method-assign]

        state = health(running.node)
        assert (state.live, state.ready) == (True, True)
        assert full in state.problems[0]
        assert node_status(running.node).storage_full


async def test_a_partition_that_is_read_again_is_told_until_it_is() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        owner = running.node.topic("orders").owners[0]
        owner.distrust("timer", RuntimeError("planted"))

        assert health(running.node).ready
        assert "being read again" in health(running.node).problems[0]
        await until(lambda: not health(running.node).problems)
        assert node_status(running.node).crashes == {"timer": 1}
