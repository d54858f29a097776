"""Messages that come later, messages that expire, and messages that come first."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import sealane
from tests.scenarios.broker import Broker, all_settled, described, eventually, take, take_payloads, working_takes


async def test_a_delayed_message_comes_when_it_is_due(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"later", delay=0.6)
    await lane.publish("orders", b"now")
    now, later = await take(lane.consume("orders", "billing"), 2)
    assert (now.payload, later.payload, later.attempt) == (b"now", b"later", 1)
    assert datetime.now(UTC) >= later.created + timedelta(seconds=0.6)


async def test_delayed_messages_come_in_the_order_of_their_moments(lane: sealane.Lane) -> None:
    for delay in (0.9, 0.3, 0.6):
        await lane.publish("orders", b"%g" % delay, delay=delay)
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"0.3", b"0.6", b"0.9"]


async def test_a_delay_outlives_a_restart(directory: Broker) -> None:
    await directory.lane.publish("orders", b"later", delay=1)
    lane = await directory.restart()
    async with lane.consume("orders", "billing") as messages:
        await lane.publish("orders", b"now")
        now, later = await take(messages, 2)
    assert (now.payload, later.payload) == (b"now", b"later")
    assert datetime.now(UTC) >= later.created + timedelta(seconds=1)


async def test_an_expired_message_is_not_delivered(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"stale", ttl=0.03)
    await lane.publish("orders", b"fresh", ttl=60)
    await working_takes(0.05)
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"fresh"]
    await all_settled(lane, "orders", "billing")


async def test_a_message_expires_while_it_waits_for_a_consumer(lane: sealane.Lane) -> None:
    async with lane.consume("orders", "billing", prefetch=1) as messages:
        loop = aiter(messages)
        await lane.publish("orders", b"first")
        first = await anext(loop)
        await lane.publish("orders", b"stale", ttl=0.03)
        await lane.publish("orders", b"fresh")
        await working_takes(0.05)
        await first.ack()
        assert (await anext(loop)).payload == b"fresh"
        await loop.aclose()


async def test_an_expired_message_is_not_delivered_after_a_restart(directory: Broker) -> None:
    await directory.lane.publish("orders", b"stale", ttl=0.03)
    await directory.lane.publish("orders", b"fresh")
    await working_takes(0.05)
    lane = await directory.restart()
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"fresh"]


async def test_what_expires_while_it_is_handled_can_still_be_acked(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", ttl=1)
    [message] = await take(lane.consume("orders", "billing"), 1)
    await working_takes(1.05)
    await message.ack(confirm=True)
    await all_settled(lane, "orders", "billing")


async def test_what_expires_while_it_is_handled_does_not_come_again(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", ttl=1)
    [message] = await take(lane.consume("orders", "billing"), 1)
    await working_takes(1.05)
    await message.nack(delay=0, confirm=True)
    await all_settled(lane, "orders", "billing")
    assert "default/orders.billing.dead" not in await lane.topics()


async def test_a_message_may_expire_before_it_is_due(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"never", ttl=0.02, delay=0.1)
    await lane.publish("orders", b"last", delay=0.15)
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"last"]
    assert (await described(lane, "orders", "billing")).depth == 0


@pytest.mark.parametrize("field", ["ttl", "delay"])
@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e18, "60"])
async def test_what_is_no_time_is_refused(lane: sealane.Lane, field: str, seconds) -> None:
    with pytest.raises(sealane.InvalidMessage) as refused:
        await lane.publish("orders", b"a", **{field: seconds})
    assert refused.value.field == field


async def test_a_ttl_of_nothing_is_refused(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.InvalidMessage, match="ttl"):
        await lane.publish("orders", b"a", ttl=0)


async def test_a_higher_priority_comes_first_and_ties_come_in_order(lane: sealane.Lane) -> None:
    for priority in (5, 1, 10, 5, 1, 10):
        await lane.publish("orders", b"%d" % priority, priority=priority)
    messages = await take(lane.consume("orders", "billing"), 6)
    assert [(each.priority, each.offset) for each in messages] == [(10, 2), (10, 5), (5, 0), (5, 3), (1, 1), (1, 4)]


async def test_an_urgent_message_overtakes_a_long_queue(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(20_000)])
    await lane.publish("orders", b"urgent", priority=9)
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", prefetch=10):
            assert message.payload == b"urgent"
            break


async def test_a_priority_survives_a_restart_and_a_retry(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"a", b"b"])
    await directory.lane.publish("orders", b"urgent", priority=9)
    lane = await directory.restart()
    [urgent] = await take(lane.consume("orders", "billing"), 1)
    await urgent.nack(delay=0, confirm=True)

    async def is_ready_again() -> bool:
        return (await described(lane, "orders", "billing")).waiting == 0

    await eventually(is_ready_again)
    messages = await take(lane.consume("orders", "billing"), 3)
    assert [message.payload for message in messages] == [b"urgent", b"a", b"b"]
