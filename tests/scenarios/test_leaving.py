"""Leaving the loop, in any way, gives back what was fetched ahead; what was handed out can still be answered."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from tests.scenarios.broker import AT_ONCE, Broker, take, take_payloads


async def by_break(lane: sealane.Lane) -> sealane.Message:
    async for message in lane.consume("orders", "billing"):
        break
    return message


async def by_exception(lane: sealane.Lane) -> sealane.Message:
    with pytest.raises(ZeroDivisionError):
        async for message in lane.consume("orders", "billing"):
            raise ZeroDivisionError
    return message


async def by_cancellation(lane: sealane.Lane) -> sealane.Message:
    got: asyncio.Future[sealane.Message] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        async for message in lane.consume("orders", "billing"):
            got.set_result(message)
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    message = await got
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    return message


async def by_return_from_a_block(lane: sealane.Lane) -> sealane.Message:
    async with lane.consume("orders", "billing") as messages:
        async for message in messages:
            return message
    raise AssertionError


async def by_timeout(lane: sealane.Lane) -> sealane.Message:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            async for message in lane.consume("orders", "billing"):
                limit.reschedule(asyncio.get_running_loop().time())
                await asyncio.Event().wait()
    return message


WAYS = [by_break, by_exception, by_cancellation, by_return_from_a_block, by_timeout]


@pytest.mark.parametrize("leave", WAYS)
async def test_what_was_fetched_ahead_goes_to_others_at_once_and_counts_no_attempt(lane: sealane.Lane, leave) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(600)])

    left = await leave(lane)
    rest = await take(lane.consume("orders", "billing"), 599)

    assert left.payload == b"0"
    assert [message.payload for message in rest] == [b"%d" % index for index in range(1, 600)]
    assert {message.attempt for message in rest} == {1}


@pytest.mark.parametrize("leave", WAYS)
async def test_what_was_handed_out_keeps_its_lease_and_can_be_acked(lane: sealane.Lane, leave) -> None:
    await lane.publish_many("orders", [b"first", b"second"])
    left = await leave(lane)
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"second"]
    await left.extend(60)
    await left.ack(confirm=True)


async def test_what_was_handed_out_can_be_nacked_after_leaving(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"first")
    await (await by_break(lane)).nack(delay=0)
    [again] = await take(lane.consume("orders", "billing"), 1)
    assert again.attempt == 2


async def test_a_lease_ends_after_leaving_as_it_would_have_before(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"first")
    [first] = await take(lane.consume("orders", "billing", lease_seconds=0.05, retry=AT_ONCE), 1)
    [again] = await take(lane.consume("orders", "billing", lease_seconds=60, retry=AT_ONCE), 1)
    assert (first.attempt, again.attempt) == (1, 2)
    with pytest.raises(sealane.LeaseLost):
        await first.ack(confirm=True)


async def test_leaving_a_loop_that_never_had_a_message_is_fine(lane: sealane.Lane) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            async for _ in lane.consume("orders", "billing"):
                raise AssertionError
    await lane.publish("orders", b"a")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"a"]


async def test_a_consumer_that_was_never_started_leaves_nothing_behind(lane: sealane.Lane) -> None:
    lane.consume("orders", "billing")
    assert await lane.topics() == []


async def test_closing_the_lane_ends_its_leases_and_the_next_one_gets_the_messages(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"handed out", b"fetched ahead"])
    async for _ in directory.lane.consume("orders", "billing"):
        break

    lane = await directory.restart()

    messages = await take(lane.consume("orders", "billing"), 2)
    assert [(message.payload, message.attempt) for message in messages] == [(b"handed out", 2), (b"fetched ahead", 1)]
