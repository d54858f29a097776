"""Topics are created, configured, described, listed and deleted, and outlive the broker."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import sealane
from sealane.node import NodeSettings, TopicSettings
from tests.scenarios.broker import Broker, described, eventually, take, take_payloads


async def test_a_topic_is_created_on_first_publish_with_the_defaults(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"hello")

    description = await lane.describe_topic("orders")
    assert (description.config.partitions, description.config.durable, description.config.sealed) == (1, True, True)
    assert description.config.retention_seconds == 7 * 24 * 3600
    assert [(each.start, each.end) for each in description.partitions] == [(0, 1)]


async def test_a_topic_is_created_on_first_consume(lane: sealane.Lane) -> None:
    async with lane.consume("orders", "billing") as messages:
        assert await lane.topics() == ["default/orders"]
        await lane.publish("orders", b"hello")
        assert await take_payloads(messages, 1) == [b"hello"]


async def test_without_auto_create_an_unknown_topic_is_an_error_that_says_what_to_do(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(topics=TopicSettings(auto_create=False)))

    with pytest.raises(sealane.TopicNotFound, match=r"orders.*create it first"):
        await lane.publish("orders", b"hello")
    with pytest.raises(sealane.TopicNotFound):
        await take(lane.consume("orders", "billing"), 1)
    assert await lane.topics() == []

    await lane.create_topic("orders")
    await lane.publish("orders", b"hello")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"hello"]


async def test_topics_are_listed_in_order_without_those_of_the_system(lane: sealane.Lane) -> None:
    for name in ("zebra", "shop/orders", "apple"):
        await lane.create_topic(name)
    async with lane.transaction("t") as transaction:
        await transaction.publish("apple", b"")

    assert await lane.topics() == ["default/apple", "default/zebra", "shop/orders"]


async def test_creating_a_topic_again_is_fine_unless_it_differs(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    await lane.create_topic("orders", partitions=2)

    with pytest.raises(sealane.AlreadyExists, match="partitions is 2, not 3"):
        await lane.create_topic("orders", partitions=3)


@pytest.mark.parametrize(
    ("argument", "config"),
    [
        ("partitions", {"partitions": 0}),
        ("partitions", {"partitions": 1_025}),
        ("retention_seconds", {"retention_seconds": -1}),
        ("messages_max", {"messages_max": 0}),
        ("topic configuration", {"when_full": "explode"}),
        ("topic configuration", {"partitions": "many"}),
        ("colour", {"colour": "blue"}),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused_by_name(lane: sealane.Lane, argument, config) -> None:
    with pytest.raises(sealane.InvalidArgument) as refused:
        await lane.create_topic("orders", **config)
    assert refused.value.argument == argument
    assert await lane.topics() == []


async def test_many_at_once_create_one_topic(lane: sealane.Lane) -> None:
    await asyncio.gather(*(lane.publish("orders", b"%d" % index) for index in range(20)))

    payloads = await take_payloads(lane.consume("orders", "billing"), 20)
    assert sorted(payloads) == sorted(b"%d" % index for index in range(20))


async def test_a_topic_is_configured_and_consumers_get_the_messages_of_new_partitions(lane: sealane.Lane) -> None:
    await lane.create_topic("orders")
    async with lane.consume("orders", "billing") as messages:
        await lane.configure_topic("orders", partitions=4, retention_seconds=60)
        receipts = [await lane.publish("orders", b"%d" % index, key=b"key %d" % index) for index in range(40)]
        assert {receipt.partition for receipt in receipts} == {0, 1, 2, 3}
        assert len(set(await take_payloads(messages, 40))) == 40

    description = await lane.describe_topic("orders")
    assert (description.config.partitions, description.config.retention_seconds) == (4, 60)
    assert sum(each.end for each in description.partitions) == 40


async def test_what_is_fixed_at_creation_cannot_be_configured(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)

    for change in ({"sealed": False}, {"durable": False}, {"partitions": 1}, {"colour": "blue"}):
        with pytest.raises(sealane.InvalidArgument) as refused:
            await lane.configure_topic("orders", **change)
        assert refused.value.argument in change
    with pytest.raises(sealane.TopicNotFound):
        await lane.configure_topic("other", partitions=2)


async def test_a_deleted_topic_is_gone_with_its_messages_and_subscriptions(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"old")
    await take(lane.consume("orders", "billing"), 1)

    await lane.delete_topic("orders")

    assert await lane.topics() == []
    for asked in (lane.describe_topic("orders"), lane.delete_topic("orders")):
        with pytest.raises(sealane.TopicNotFound):
            await asked
    await lane.publish("orders", b"new")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"new"]


async def test_consumers_of_a_deleted_topic_are_told(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"first", b"second"])
    handled = []
    with pytest.raises(sealane.TopicNotFound, match="deleted"):
        async with asyncio.timeout(10):
            async for message in lane.consume("orders", "billing", prefetch=1):
                handled.append(message.payload)
                await message.ack()
                await lane.delete_topic("orders")
    assert handled == [b"first"]
    with pytest.raises(sealane.Closed):
        await message.ack(confirm=True)


async def test_leaving_the_loop_of_a_deleted_topic_is_quiet(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"first", b"second", b"third"])
    async for message in lane.consume("orders", "billing"):
        await lane.delete_topic("orders")
        await message.ack()
        break
    assert await lane.topics() == []


async def test_a_description_tells_what_subscriptions_have_to_do(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(10)])
    await lane.publish("orders", b"later", delay=3600)
    async with lane.consume("orders", "billing", lease_seconds=60) as messages:
        taken = await take(messages, 5)
        for message in taken[:3]:
            await message.ack(confirm=True)
        await taken[3].nack(delay=3600, confirm=True)

    async def is_told() -> bool:
        found = await described(lane, "orders", "billing")
        return (found.depth, found.leased, found.waiting, found.dying) == (8, 1, 2, 0)

    await eventually(is_told)
    description = await described(lane, "orders", "billing")
    assert description.positions == {0: 3}
    assert (description.config.mode, description.config.lease_seconds) == ("queue", 60)


async def test_an_unsubscribed_subscription_begins_anew(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"hello")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"hello"]

    await lane.unsubscribe("orders", "billing")
    assert (await lane.describe_topic("orders")).subscriptions == ()
    with pytest.raises(sealane.SubscriptionNotFound):
        await lane.unsubscribe("orders", "billing")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"hello"]


async def test_consumers_of_a_deleted_subscription_are_told(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"hello")
    with pytest.raises(sealane.SubscriptionNotFound, match="deleted"):
        async with asyncio.timeout(10):
            async for message in lane.consume("orders", "billing"):
                await message.ack()
                await lane.unsubscribe("orders", "billing")


async def test_partitions_are_added_to_a_topic_whose_consumers_have_left(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    [held] = await take(lane.consume("orders", "billing"), 1)
    [other] = await take(lane.consume("orders", "shipping"), 1)
    await lane.unsubscribe("orders", "shipping")

    await lane.configure_topic("orders", partitions=3)

    await held.ack(confirm=True)
    await other.ack()
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"b"]


async def test_topics_subscriptions_and_their_configuration_survive_a_restart(directory: Broker) -> None:
    lane = directory.lane
    await lane.create_topic("orders", partitions=3, retention_seconds=60, messages_max=100)
    await lane.configure_topic("orders", when_full="drop-oldest", partitions=4)
    await lane.create_topic("gone")
    await lane.delete_topic("gone")
    await take_payloads_of(lane)

    lane = await directory.restart()

    assert await lane.topics() == ["default/orders"]
    config = (await lane.describe_topic("orders")).config
    assert (config.partitions, config.retention_seconds, config.messages_max) == (4, 60, 100)
    assert config.when_full == "drop-oldest"
    description = await described(lane, "orders", "billing")
    assert (description.config.mode, description.config.filter) == ("exclusive", "priority > 3")
    assert (description.depth, sum(description.positions.values())) == (0, 1)


async def take_payloads_of(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"hello", key=b"k")
    await take_payloads(lane.consume("orders", "billing", mode="exclusive", filter="priority > 3"), 1)


async def test_a_topic_made_again_after_its_deletion_has_none_of_the_old_after_a_restart(directory: Broker) -> None:
    await directory.lane.publish("orders", b"old", id="00000000-0000-7000-8000-000000000001")
    await directory.lane.delete_topic("orders")
    await directory.lane.publish("orders", b"new", id="00000000-0000-7000-8000-000000000001")

    lane = await directory.restart()

    assert [each.end for each in (await lane.describe_topic("orders")).partitions] == [1]
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"new"]


@pytest.mark.parametrize("passes", range(12))
async def test_a_caller_who_gives_up_half_way_leaves_nothing_half_done(lane: sealane.Lane, passes: int) -> None:
    """Cancelled after so many passes of the event loop."""
    for begun in (
        lambda: lane.create_topic("orders", partitions=2),
        lambda: lane.publish("orders", b"a"),
        lambda: take(lane.consume("orders", "billing"), 1),
        lambda: lane.configure_topic("orders", partitions=3),
        lambda: lane.seek("orders", "billing", "earliest"),
        lambda: lane.unsubscribe("orders", "billing"),
        lambda: lane.delete_topic("orders"),
    ):
        task = asyncio.ensure_future(begun())
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            assert isinstance(task.exception(), sealane.SealaneError | None)

    # What was begun is finished behind the caller's back; this waits for it.
    with suppress(sealane.TopicNotFound):
        await lane.delete_topic("orders")
    await lane.publish("orders", b"b")
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing"):
            if message.payload == b"b":
                break
