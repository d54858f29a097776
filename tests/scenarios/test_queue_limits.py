"""A topic may limit how much waits in it: it refuses, or lets the oldest go, as it was told."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from tests.scenarios.broker import Broker, described, take, take_payloads


async def limited(lane: sealane.Lane, **config) -> None:
    await lane.create_topic("orders", messages_max=3, **config)
    async with lane.consume("orders", "billing"):
        pass


async def test_a_full_queue_refuses_and_says_how_full_it_is(lane: sealane.Lane) -> None:
    await limited(lane)
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    with pytest.raises(sealane.QueueFull, match="retry when consumers have caught up") as refused:
        await lane.publish("orders", b"d")
    assert (refused.value.topic, refused.value.limit, refused.value.value) == ("default/orders", 3, 3)

    await take_payloads(lane.consume("orders", "billing"), 1)
    await lane.publish("orders", b"d")
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"b", b"c", b"d"]


async def test_a_batch_that_does_not_fit_is_refused_whole(lane: sealane.Lane) -> None:
    await limited(lane)
    await lane.publish_many("orders", [b"a", b"b"])
    with pytest.raises(sealane.QueueFull):
        await lane.publish_many("orders", [b"c", b"d"])
    await lane.publish("orders", b"e")
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"a", b"b", b"e"]


async def test_of_single_messages_published_together_those_that_fit_are_stored(lane: sealane.Lane) -> None:
    await limited(lane)
    outcomes = await asyncio.gather(*(lane.publish("orders", b"%d" % i) for i in range(5)), return_exceptions=True)
    assert sum(isinstance(outcome, sealane.QueueFull) for outcome in outcomes) == 2
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"0", b"1", b"2"]


async def test_without_subscriptions_nothing_waits(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", messages_max=1)
    await lane.publish_many("orders", [b"a", b"b", b"c"])


async def test_the_slowest_subscription_decides(lane: sealane.Lane) -> None:
    await limited(lane)
    async with lane.consume("orders", "slow"):
        pass
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    await take_payloads(lane.consume("orders", "billing"), 3)
    with pytest.raises(sealane.QueueFull):
        await lane.publish("orders", b"d")


async def test_the_oldest_go_where_the_topic_says_so(lane: sealane.Lane) -> None:
    await limited(lane, when_full="drop-oldest")
    for index in range(10):
        await lane.publish("orders", b"%d" % index)
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"7", b"8", b"9"]
    assert (await described(lane, "orders", "billing")).depth == 0


async def test_what_was_dropped_while_it_was_leased_is_lost_to_its_consumer(lane: sealane.Lane) -> None:
    await limited(lane, when_full="drop-oldest")
    await lane.publish("orders", b"old")
    [old] = await take(lane.consume("orders", "billing"), 1)
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    await old.ack(confirm=True)  # It is settled, which is all that was asked.
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"a", b"b", b"c"]


async def test_the_limit_can_be_changed_and_lifted(lane: sealane.Lane) -> None:
    await limited(lane)
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    await lane.configure_topic("orders", messages_max=4)
    await lane.publish("orders", b"d")
    with pytest.raises(sealane.QueueFull):
        await lane.publish("orders", b"e")
    await lane.configure_topic("orders", messages_max=None)
    await lane.publish_many("orders", [b"%d" % index for index in range(100)])


async def test_it_holds_after_a_restart(directory: Broker) -> None:
    await limited(directory.lane)
    await directory.lane.publish_many("orders", [b"a", b"b", b"c"])
    lane = await directory.restart()
    with pytest.raises(sealane.QueueFull):
        await lane.publish("orders", b"d")
