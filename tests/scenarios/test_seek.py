"""Seek: a subscription begins again from an offset, a moment, or an end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import sealane
from tests.scenarios.broker import Broker, described, take, take_payloads


async def test_messages_come_again_from_the_beginning(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"a", b"b", b"c"]
    assert await lane.seek("orders", "billing", "earliest") == {0: 0}
    messages = await take(lane.consume("orders", "billing"), 3)
    assert [(message.payload, message.attempt) for message in messages] == [(b"a", 1), (b"b", 1), (b"c", 1)]


async def test_messages_are_skipped_to_the_end(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    async with lane.consume("orders", "billing"):
        pass
    assert await lane.seek("orders", "billing", "latest") == {0: 3}
    await lane.publish("orders", b"d")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"d"]


async def test_offsets_and_moments_are_places_too(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    last = (await take(lane.consume("orders", "billing"), 3))[-1]
    assert await lane.seek("orders", "billing", {0: 2}) == {0: 2}
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"c"]
    assert await lane.seek("orders", "billing", last.created) == {0: 0}
    assert await lane.seek("orders", "billing", last.created + timedelta(seconds=1)) == {0: 3}


async def test_partitions_are_moved_together(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)
    for index in range(9):
        await lane.publish("orders", b"%d" % index)
    await take_payloads(lane.consume("orders", "billing"), 9)
    assert await lane.seek("orders", "billing", {0: 1, 1: 2}) == {0: 1, 1: 2, 2: 0}
    messages = await take(lane.consume("orders", "billing"), 6)
    assert sorted((each.partition, each.offset) for each in messages) == [
        (0, 1),
        (0, 2),
        (1, 2),
        (2, 0),
        (2, 1),
        (2, 2),
    ]


async def test_a_running_consumer_is_moved(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(600)])
    seen: list[bytes] = []
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing"):
            seen.append(message.payload)
            if len(seen) == 3:
                await lane.seek("orders", "billing", {0: 598})
                with pytest.raises(sealane.LeaseLost):
                    await message.extend(30)
            if len(seen) == 5:
                break
    assert seen == [b"0", b"1", b"2", b"598", b"599"]


async def test_a_confirmed_ack_of_what_was_held_before_the_seek_is_refused(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    [message] = await take(lane.consume("orders", "billing"), 1)
    await lane.seek("orders", "billing", "earliest")
    with pytest.raises(sealane.LeaseLost):
        await message.ack(confirm=True)
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"a"]


async def test_the_filter_still_holds(lane: sealane.Lane) -> None:
    for index in range(6):
        await lane.publish("orders", b"%d" % index, headers={"odd": str(index % 2)})
    for _ in range(2):
        messages = lane.consume("orders", "billing", filter="headers['odd'] = '1'")
        assert await take_payloads(messages, 3) == [b"1", b"3", b"5"]
        await lane.seek("orders", "billing", "earliest")


async def test_it_survives_a_restart(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"a", b"b", b"c"])
    await take_payloads(directory.lane.consume("orders", "billing"), 3)
    await directory.lane.seek("orders", "billing", {0: 1})
    lane = await directory.restart()
    assert (await described(lane, "orders", "billing")).positions == {0: 1}
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"b", b"c"]


async def test_what_does_not_exist_cannot_be_moved(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.TopicNotFound):
        await lane.seek("orders", "billing", "earliest")
    await lane.publish("orders", b"a")
    with pytest.raises(sealane.SubscriptionNotFound):
        await lane.seek("orders", "billing", "earliest")
    async with lane.consume("orders", "billing"):
        with pytest.raises(sealane.InvalidArgument):
            await lane.seek("orders", "billing", "middle")
