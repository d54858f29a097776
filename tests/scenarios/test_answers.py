"""Acks, nacks and extensions, and leases that end without one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import sealane
from tests.scenarios.broker import AT_ONCE, Broker, all_settled, described, take, take_payloads, working_takes


async def test_an_ack_settles_within_moments_without_being_waited_for(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    for message in await take(lane.consume("orders", "billing"), 2):
        await message.ack()
    await all_settled(lane, "orders", "billing")


async def test_a_confirmed_ack_is_settled_on_return(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    first, second = await take(lane.consume("orders", "billing"), 2)
    await second.ack(confirm=True)
    await first.ack(confirm=True)
    assert (await described(lane, "orders", "billing")).positions == {0: 2}


async def test_a_confirmed_ack_may_be_repeated(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    [message] = await take(lane.consume("orders", "billing"), 1)
    await message.ack(confirm=True)
    await message.ack(confirm=True)
    await message.ack()


async def test_what_was_confirmed_never_comes_again_not_even_after_restarts(directory: Broker) -> None:
    lane = directory.lane
    await lane.publish_many("orders", [b"%d" % index for index in range(10)])
    for message in await take(lane.consume("orders", "billing"), 10):
        if int(message.payload) % 2:
            await message.ack(confirm=True)

    for _ in range(2):
        lane = await directory.restart()
        messages = await take(lane.consume("orders", "billing"), 5)
        assert [message.payload for message in messages] == [b"0", b"2", b"4", b"6", b"8"]
    await lane.publish("orders", b"last")
    rest = lane.consume("orders", "billing")
    assert (await take_payloads(rest, 1)) == [b"last"]


async def test_acks_that_were_not_waited_for_are_kept_when_the_lane_is_closed(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"a", b"b", b"c"])
    messages = await take(directory.lane.consume("orders", "billing"), 3)
    await directory.lane.publish("other", b"long after the loop was left")
    for message in messages[:2]:
        await message.ack()

    lane = await directory.restart()

    [message] = await take(lane.consume("orders", "billing"), 1)
    assert message.payload == b"c"


async def test_closing_from_within_the_loop_keeps_the_acks(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"a", b"b"])
    async for message in directory.lane.consume("orders", "billing"):
        await message.ack()
        await directory.stop()
        break

    assert await take_payloads((await directory.start()).consume("orders", "billing"), 1) == [b"b"]


async def test_a_message_that_is_not_answered_comes_again_when_its_lease_ends(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    attempts = []
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", lease_seconds=0.1, retry=AT_ONCE):
            attempts.append(message.attempt)
            if len(attempts) == 3:
                await message.ack(confirm=True)
                break
    assert attempts == [1, 2, 3]
    await all_settled(lane, "orders", "billing")


async def test_an_ack_after_the_lease_is_over_is_an_error_when_confirmed(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    [first] = await take(lane.consume("orders", "billing", lease_seconds=0.05, retry=AT_ONCE), 1)
    [again] = await take(lane.consume("orders", "billing", retry=AT_ONCE), 1)
    assert again.attempt == 2

    for answer in (first.ack(confirm=True), first.nack(confirm=True), first.extend(10)):
        with pytest.raises(sealane.LeaseLost, match="billing"):
            await answer
    await first.ack()
    await again.extend(60)
    await again.ack(confirm=True)
    await first.ack(confirm=True)  # It is settled now, which is all that was asked.


async def test_an_extended_lease_lasts(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"kept", b"timer"])
    async with asyncio.timeout(20):
        consumer = aiter(lane.consume("orders", "billing", prefetch=1, lease_seconds=1, retry=AT_ONCE))
        kept = await anext(consumer)
        await kept.extend(60)
        # The other message comes and goes: leases of the usual length pass.
        timers = [await anext(consumer) for _ in range(3)]
        assert [message.payload for message in timers] == [b"timer"] * 3
        assert timers[-1].attempt == 3
        await kept.ack(confirm=True)
        await consumer.aclose()


async def test_a_nacked_message_comes_again_after_its_delay(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"slow", b"quick"])
    slow, quick = await take(lane.consume("orders", "billing"), 2)
    moment = datetime.now(UTC)
    await slow.nack(delay=0.6, reason="not now", confirm=True)
    await quick.nack(delay=0, confirm=True)

    quick, slow = await take(lane.consume("orders", "billing"), 2)

    assert (quick.payload, quick.attempt, slow.payload, slow.attempt) == (b"quick", 2, b"slow", 2)
    assert datetime.now(UTC) - moment >= timedelta(seconds=0.6)


async def test_a_nack_without_a_delay_follows_the_back_off(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    retry = sealane.Retry("exponential", 0.02, 0.04)
    attempts, moments = [], []
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", retry=retry):
            attempts.append(message.attempt)
            moments.append(asyncio.get_running_loop().time())
            if len(attempts) == 4:
                break
            await message.nack()
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert attempts == [1, 2, 3, 4]
    assert all(pause >= wanted - 0.001 for pause, wanted in zip(pauses, (0.02, 0.04, 0.04), strict=True))


async def test_attempts_are_remembered_across_restarts(directory: Broker) -> None:
    await directory.lane.publish("orders", b"a")
    for attempt in (1, 2, 3):
        [message] = await take(directory.lane.consume("orders", "billing", retry=AT_ONCE), 1)
        assert message.attempt == attempt
        await message.nack(confirm=True)
        await directory.restart()


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf")])
async def test_a_nack_cannot_be_delayed_by_that(lane: sealane.Lane, delay: float) -> None:
    await lane.publish("orders", b"a")
    [message] = await take(lane.consume("orders", "billing"), 1)
    with pytest.raises(sealane.InvalidArgument) as refused:
        await message.nack(delay=delay)
    assert refused.value.argument == "delay"
    await message.ack(confirm=True)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
async def test_a_lease_cannot_be_extended_by_that(lane: sealane.Lane, seconds: float) -> None:
    await lane.publish("orders", b"a")
    [message] = await take(lane.consume("orders", "billing"), 1)
    with pytest.raises(sealane.InvalidArgument) as refused:
        await message.extend(seconds)
    assert refused.value.argument == "seconds"
    await message.ack(confirm=True)


async def test_messages_that_wait_behind_a_slow_one_lose_no_attempts(lane: sealane.Lane) -> None:
    """They were read ahead and never seen: it is not their fault."""
    await lane.publish_many("orders", [b"%d" % index for index in range(4)])
    attempts = []
    async with asyncio.timeout(20):
        async for message in lane.consume("orders", "billing", lease_seconds=2, retry=AT_ONCE):
            await working_takes(0.7)
            await message.ack(confirm=True)
            attempts.append((message.payload, message.attempt))
            if len(attempts) == 4:
                break
    assert sorted(attempts) == [(b"%d" % index, 1) for index in range(4)]
