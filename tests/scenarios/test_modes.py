"""The four ways in which consumers share a subscription."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

import sealane
from sealane.delivery.config import Mode
from tests.scenarios.broker import AT_ONCE, all_settled, eventually, take, take_payloads


async def work(lane: sealane.Lane, seen: list, mode: Mode, **options) -> None:
    async for message in lane.consume("orders", "billing", mode=mode, **options):
        await asyncio.sleep(0)  # Let the others have a turn.
        await message.ack()
        seen.append((message.key, message.payload))  # Last: who waits for it may stop this worker at once.


async def run_workers(lane: sealane.Lane, count: int, mode: Mode, expected: int, **options) -> list[list]:
    """Run workers until they have seen that many messages between them."""
    seen: list[list] = [[] for _ in range(count)]
    tasks = [asyncio.create_task(work(lane, mine, mode, **options)) for mine in seen]

    async def enough() -> bool:
        for task in tasks:
            assert not task.done(), task.exception()
        return sum(map(len, seen)) >= expected

    await eventually(enough)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seen


async def test_a_queue_shares_the_messages_and_each_goes_to_one(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    payloads = [b"%d" % index for index in range(200)]
    for payload in payloads:
        await lane.publish("orders", payload)

    seen = await run_workers(lane, 4, "queue", 200, prefetch=5)

    assert sorted(payload for mine in seen for _, payload in mine) == sorted(payloads)
    assert sum(1 for mine in seen if mine) > 1
    await all_settled(lane, "orders", "billing")


async def test_an_exclusive_subscription_serves_one_consumer_until_it_leaves(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    first = lane.consume("orders", "billing", mode="exclusive")
    async with first, lane.consume("orders", "billing", mode="exclusive") as second:
        standby = asyncio.create_task(take_payloads(second, 10))
        for index in range(20):
            await lane.publish("orders", b"%d" % index)
        iterator = aiter(first)
        served = []
        for _ in range(10):
            message = await anext(iterator)
            served.append(message.payload)
            await message.ack()
        assert not standby.done()
        await iterator.aclose()
        assert sorted(served + await standby) == sorted(b"%d" % index for index in range(20))


async def test_key_shared_consumers_each_hold_keys_and_see_them_in_order(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    for index in range(300):
        await lane.publish("orders", b"%d" % index, key=b"key %d" % (index % 12))

    seen = await run_workers(lane, 3, "key-shared", 300, prefetch=10)

    by_key = defaultdict(list)
    for mine in seen:
        for key, payload in mine:
            by_key[key].append(int(payload))
    assert sum(map(len, by_key.values())) == 300
    for mine in seen:
        last: dict = {}
        for key, payload in mine:
            assert int(payload) > last.get(key, -1)
            last[key] = int(payload)


async def test_a_failed_message_holds_back_the_later_ones_of_its_key_and_no_others(lane: sealane.Lane) -> None:
    for payload, key in ((b"a1", b"a"), (b"a2", b"a"), (b"b1", b"b"), (b"a3", b"a")):
        await lane.publish("orders", payload, key=key)
    handled, failed = [], False
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", mode="key-shared"):
            if message.payload == b"a1" and not failed:
                failed = True
                await message.nack(delay=0.05)
                continue
            handled.append((message.payload, message.attempt))
            await message.ack(confirm=True)
            if len(handled) == 4:
                break
    assert handled == [(b"b1", 1), (b"a1", 2), (b"a2", 1), (b"a3", 1)]


async def test_a_broadcast_goes_to_every_consumer(lane: sealane.Lane) -> None:
    async with (
        lane.consume("news", "screens", mode="broadcast", start="latest") as one,
        lane.consume("news", "screens", mode="broadcast", start="latest") as other,
    ):
        await lane.publish_many("news", [b"a", b"b", b"c"])
        assert await take_payloads(one, 3) == [b"a", b"b", b"c"]
        assert await take_payloads(other, 3) == [b"a", b"b", b"c"]


async def test_a_broadcast_consumer_that_fails_gets_it_again_alone(lane: sealane.Lane) -> None:
    await lane.publish("news", b"a")
    async with (
        lane.consume("news", "screens", mode="broadcast", retry=AT_ONCE) as one,
        lane.consume("news", "screens", mode="broadcast", retry=AT_ONCE) as other,
    ):
        iterator = aiter(one)
        await (await anext(iterator)).nack()
        again = await anext(iterator)
        assert (again.payload, again.attempt) == (b"a", 2)
        await again.ack()
        await lane.publish("news", b"b")
        assert await take_payloads(other, 2) == [b"a", b"b"]
        await iterator.aclose()


async def test_a_subscription_keeps_its_mode(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    await take(lane.consume("orders", "billing"), 1)
    for mode in ("exclusive", "key-shared", "broadcast"):
        with pytest.raises(sealane.ModeConflict, match=f"its mode is queue, not {mode}"):
            await take(lane.consume("orders", "billing", mode=mode), 1)


async def test_lease_and_retry_of_a_subscription_follow_its_latest_consumer(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    await take(lane.consume("orders", "billing", lease_seconds=60), 1)
    async with lane.consume("orders", "billing", lease_seconds=5, retry=sealane.Retry("fixed", 1.0, 1.0, 3)):
        [description] = (await lane.describe_topic("orders")).subscriptions
        assert (description.config.lease_seconds, description.config.retry.attempts_max) == (5, 3)
