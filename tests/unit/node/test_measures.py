"""What becomes of messages is counted, by topic and subscription, once a batch."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid

import pytest

import sealane
from sealane.client.embedded import in_process
from sealane.delivery.config import SubscriptionConfig
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.errors import QueueFull, TopicNotFound
from sealane.node import Node
from sealane.node.measures import SLOW_SYNC_SECONDS, Measures, SubscriptionMeasures
from sealane.node.surroundings import Surroundings
from sealane.node.witness import LEASES_SPARE
from tests.unit.node.running_node import DEADLINE_SECONDS, Running, running_node, until

AT_ONCE = sealane.Retry("fixed", 0.0)


def billing(running: Running, topic: str = "default/orders") -> SubscriptionMeasures:
    return running.node.measures.topic(topic).subscription("billing")


async def take_one(running: Running, topic: str = "orders", **kwargs) -> sealane.Message:
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in running.lane.consume(topic, subscription="billing", **kwargs):
            return message
    raise AssertionError


async def test_publishes_are_counted_with_their_bytes_once_they_are_durable() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x" * 100] * 50)
        await running.lane.publish("orders", b"y")

        measures = running.node.measures.topic("default/orders")
        assert measures.published == 51
        assert 51 * 24 + 5_001 <= measures.published_bytes <= 10_000
        assert measures.published_rate.per_second(running.node.measures.now()) > 0
        assert running.node.measures.publish_to_durable_seconds.count == 51


async def test_what_is_published_again_is_counted_as_a_duplicate() -> None:
    async with running_node() as running:
        given = uuid.uuid4()
        for _ in range(3):
            await running.lane.publish("orders", b"x", id=given)

        measures = running.node.measures.topic("default/orders")
        assert (measures.published, measures.duplicates) == (1, 2)


async def test_deliveries_and_acks_are_counted_and_timed_from_the_creation_of_the_message() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x" * 100] * 10)
        running.clock.pass_seconds(3)
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for batch in running.lane.consume_batches("orders", subscription="billing", messages_max=10):
                await batch.ack()
                break
        await until(lambda: billing(running).acked == 10)

        measures = billing(running)
        published = running.node.measures.topic("default/orders")
        assert measures.delivered == 10
        assert measures.delivered_bytes == published.published_bytes
        histogram = running.node.measures.publish_to_ack_seconds
        assert histogram.count == 10
        assert histogram.sum == pytest.approx(30.0)


async def test_failures_are_counted_by_their_cause() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")

        message = await take_one(running, retry=AT_ONCE)
        await message.nack()
        await until(lambda: billing(running).nacked == 1)

        message = await take_one(running, lease_seconds=5, retry=AT_ONCE)
        assert message.attempt == 2
        running.clock.pass_seconds(6)
        await until(lambda: billing(running).lease_expired == 1)

        await take_one(running, retry=AT_ONCE)
        topic = running.node.topic("orders")
        for attachment in list(topic.attachments.values()):
            await attachment.end()
        await until(lambda: billing(running).connection_ended == 1)
        assert billing(running).redelivered == 2
        assert billing(running).acked == 0


async def test_messages_handed_back_unhandled_are_released() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x"] * 20)
        await take_one(running, prefetch=10)

        await until(lambda: billing(running).released > 0)
        assert billing(running).released == billing(running).delivered - 1


async def test_messages_that_expire_before_they_are_handled_are_counted() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"brief", ttl=1)
        await running.lane.publish("orders", b"lasting")
        running.clock.pass_seconds(2)

        assert (await take_one(running)).payload == b"lasting"
        assert billing(running).expired == 1


async def test_messages_given_up_to_a_length_limit_are_counted() -> None:
    async with running_node() as running:
        await running.lane.create_topic("orders", messages_max=2, when_full="drop-oldest")
        await running.node.subscribe(running.node.topic("orders"), "billing", SubscriptionConfig(), "earliest")
        await running.lane.publish_many("orders", [b"x"] * 5)

        assert billing(running).dropped == 3


async def test_dead_letters_and_their_return_are_counted() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"poison")
        message = await take_one(running, retry=sealane.Retry("fixed", 0.0, attempts_max=1))
        await message.nack(reason="poison")
        await until(lambda: billing(running).dead_lettered == 1)

        await running.lane.redrive("orders", "billing")

        assert billing(running).redriven == 1


async def test_measures_go_with_their_topic_and_their_subscription() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        message = await take_one(running)
        await message.ack(confirm=True)
        await running.lane.unsubscribe("orders", "billing")
        assert "billing" not in running.node.measures.topic("default/orders").subscriptions

        await running.lane.delete_topic("orders")
        assert "default/orders" not in running.node.measures.topics


async def test_times_of_leases_that_ended_unnoticed_do_not_pile_up() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        message = await take_one(running)
        await message.ack(confirm=True)
        owner = running.node.topic("orders").owners[0]
        witness = owner.witness
        assert witness._created_us == {}

        witness._created_us = dict.fromkeys(range(-2 * LEASES_SPARE, 0), 1)
        await running.lane.publish("orders", b"y")
        await take_one(running)

        assert len(witness._created_us) <= LEASES_SPARE


async def test_refusals_are_counted_by_their_class() -> None:
    measures = Measures()
    for error in (QueueFull("orders", 1, 1), QueueFull("orders", 1, 1), TopicNotFound("orders")):
        measures.refused(error)

    assert measures.refusals == {"QueueFull": 2, "TopicNotFound": 1}


async def test_a_sync_that_takes_long_is_a_warning(caplog) -> None:
    measures = Measures()
    measures.group_committed(1, 100, SLOW_SYNC_SECONDS, SLOW_SYNC_SECONDS)
    assert caplog.text == ""

    measures.group_committed(1, 100, SLOW_SYNC_SECONDS + 0.1, SLOW_SYNC_SECONDS + 0.1)

    assert "a sync took long" in caplog.text
    assert "duration_ms=1100" in caplog.text


@pytest.mark.parametrize("commit", ["inline", "thread"])
async def test_the_local_engine_tells_of_its_commits_and_syncs(tmp_path, commit) -> None:
    clock = itertools.count(1_000, 50)
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"),
        settings=StorageSettings(commit=commit),
        clock=lambda: next(clock),
        entropy=os.urandom,
    )
    node = await Node.open(engine, Surroundings(lambda: next(clock), os.urandom))
    async with in_process(node) as lane:
        await asyncio.gather(*(lane.publish(f"topic-{number}", b"x") for number in range(8)))
    await node.close()

    measures = node.measures
    assert measures.group_commits.count == measures.commit_seconds.count == measures.sync_seconds.count > 0
    assert measures.group_commits.sum >= 8
    assert measures.committed_bytes > 0
    assert measures.commit_seconds.sum >= measures.sync_seconds.sum > 0
