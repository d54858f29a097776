"""Advance: a reader that keeps its own position says how far it has come, and the node shows how far behind it is."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.delivery.config import Mode
from tests.scenarios.broker import Broker, all_settled, described, eventually, take, take_payloads


async def test_a_new_subscription_begins_where_the_reader_is(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    await lane.advance("orders", "spark", {0: 2})
    shown = await described(lane, "orders", "spark")
    assert (shown.depth, shown.positions, shown.consumers) == (1, {0: 2}, 0)
    await lane.publish_many("orders", [b"d", b"e"])
    assert (await described(lane, "orders", "spark")).depth == 3
    assert await take_payloads(lane.consume("orders", "spark"), 3) == [b"c", b"d", b"e"]


async def test_the_lag_shrinks_as_the_reader_goes_on(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % number for number in range(100)])
    lags = []
    for position in (0, 1, 40, 99, 100):
        await lane.advance("orders", "spark", {0: position})
        lags.append((await described(lane, "orders", "spark")).depth)
    assert lags == [100, 99, 60, 1, 0]


async def test_it_never_goes_back(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    for position in (2, 1, 0, 2):
        await lane.advance("orders", "spark", {0: position})
        assert (await described(lane, "orders", "spark")).positions == {0: 2}


async def test_partitions_that_are_not_named_stay_where_they_are(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)
    for number in range(9):
        await lane.publish("orders", b"%d" % number)
    await lane.advance("orders", "spark", {1: 2})
    assert (await described(lane, "orders", "spark")).positions == {0: 0, 1: 2, 2: 0}
    await lane.advance("orders", "spark", {0: 3, 2: 1})
    shown = await described(lane, "orders", "spark")
    assert (shown.positions, shown.depth) == ({0: 3, 1: 2, 2: 1}, 3)


async def test_a_position_may_be_nothing_yet(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    await lane.advance("orders", "spark", {})
    await lane.advance("orders", "spark", {0: 0, 1: 0})
    assert (await described(lane, "orders", "spark")).positions == {0: 0, 1: 0}


async def test_other_subscriptions_do_not_notice(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    async with lane.consume("orders", "billing"):
        await lane.advance("orders", "spark", {0: 2})
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"a", b"b"]


async def test_acks_that_were_ahead_are_kept(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % number for number in range(6)])
    messages = await take(lane.consume("orders", "spark"), 6)
    await messages[3].ack(confirm=True)
    await lane.advance("orders", "spark", {0: 3})
    assert (await described(lane, "orders", "spark")).positions == {0: 4}


async def test_what_a_consumer_holds_is_settled_and_it_goes_on_with_the_rest(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % number for number in range(600)])
    seen: list[bytes] = []
    async with asyncio.timeout(20):
        async for message in lane.consume("orders", "spark", prefetch=10):
            seen.append(message.payload)
            if len(seen) == 3:
                await lane.advance("orders", "spark", {0: 598})
                with pytest.raises(sealane.LeaseLost):
                    await message.extend(30)
            await message.ack()
            if len(seen) == 5:
                break
    assert seen == [b"0", b"1", b"2", b"598", b"599"]
    await all_settled(lane, "orders", "spark")


@pytest.mark.parametrize("mode", ["exclusive", "key-shared"])
async def test_a_subscription_keeps_its_mode(lane: sealane.Lane, mode: Mode) -> None:
    for number in range(6):
        await lane.publish("orders", b"%d" % number, key=b"%d" % (number % 2))
    held = await take(lane.consume("orders", "spark", mode=mode), 2)
    await lane.advance("orders", "spark", {0: 4})
    assert (await described(lane, "orders", "spark")).config.mode == mode
    assert await take_payloads(lane.consume("orders", "spark", mode=mode), 2) == [b"4", b"5"]
    await held[0].ack(confirm=True)  # It asks for what is so already.


async def test_messages_that_wait_for_a_retry_are_settled(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    for message in await take(lane.consume("orders", "spark"), 2):
        await message.nack(delay=3_600)

    async def are_waiting() -> bool:
        return (await described(lane, "orders", "spark")).waiting == 2

    await eventually(are_waiting)
    await lane.advance("orders", "spark", {0: 1})
    shown = await described(lane, "orders", "spark")
    assert (shown.waiting, shown.depth) == (1, 1)


async def test_readers_may_say_it_at_the_same_time(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % number for number in range(100)])
    await asyncio.gather(*(lane.advance("orders", "spark", {0: position}) for position in range(101)))
    assert (await described(lane, "orders", "spark")).positions == {0: 100}


async def test_it_survives_a_restart(directory: Broker) -> None:
    await directory.lane.create_topic("orders", partitions=2)
    for number in range(6):
        await directory.lane.publish("orders", b"%d" % number)
    await directory.lane.advance("orders", "spark", {0: 1})
    await directory.lane.advance("orders", "spark", {0: 2, 1: 3})
    lane = await directory.restart()
    shown = await described(lane, "orders", "spark")
    assert (shown.positions, shown.depth) == ({0: 2, 1: 3}, 1)
    await lane.advance("orders", "spark", {0: 3})
    lane = await directory.restart()
    assert (await described(lane, "orders", "spark")).depth == 0


@pytest.mark.parametrize(
    ("positions", "problem"),
    [
        ({0: 4}, "4 is not in 0 to 3, where partition 0 of 'default/orders' ends"),
        ({0: -1}, "-1 is not in 0 to 3"),
        ({1: 0}, "1 is not in 0 to 0, the partitions of 'default/orders'"),
        ({-1: 0}, "-1 is not in 0 to 0, the partitions of 'default/orders'"),
    ],
)
async def test_a_position_that_cannot_be_is_refused(
    lane: sealane.Lane, positions: dict[int, int], problem: str
) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    with pytest.raises(sealane.InvalidArgument, match=problem):
        await lane.advance("orders", "spark", positions)
    assert (await lane.describe_topic("orders")).subscriptions == ()


async def test_nothing_is_moved_when_one_position_is_refused(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    for number in range(4):
        await lane.publish("orders", b"%d" % number)
    await lane.advance("orders", "spark", {0: 1})
    with pytest.raises(sealane.InvalidArgument):
        await lane.advance("orders", "spark", {0: 2, 1: 3})
    assert (await described(lane, "orders", "spark")).positions == {0: 1, 1: 0}


@pytest.mark.parametrize("subscription", ["", "a/b", "_redrive", "x" * 129])
async def test_a_name_that_cannot_be_is_refused(lane: sealane.Lane, subscription: str) -> None:
    await lane.publish("orders", b"a")
    with pytest.raises(sealane.InvalidName):
        await lane.advance("orders", subscription, {0: 1})


async def test_a_topic_is_not_made_by_it(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.TopicNotFound):
        await lane.advance("orders", "spark", {0: 0})
    assert await lane.topics() == []


async def test_a_broadcast_has_no_position_to_advance(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    async with lane.consume("orders", "spark", mode="broadcast"):
        with pytest.raises(sealane.ModeConflict, match="broadcast"):
            await lane.advance("orders", "spark", {0: 1})
