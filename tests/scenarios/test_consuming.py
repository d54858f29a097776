"""The loop of a consumer: where it starts, what it filters, how far it reads ahead, and automatic acks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import sealane
from tests.scenarios.broker import (
    AT_ONCE,
    Broker,
    all_settled,
    described,
    eventually,
    take,
    take_payloads,
    working_takes,
)


async def test_each_subscription_gets_every_message_in_order(lane: sealane.Lane) -> None:
    payloads = [b"%d" % index for index in range(300)]
    await lane.publish_many("orders", payloads[:200])
    for payload in payloads[200:]:
        await lane.publish("orders", payload)

    for subscription in ("billing", "shipping"):
        assert await take_payloads(lane.consume("orders", subscription), 300) == payloads
        assert (await described(lane, "orders", subscription)).depth == 0


async def test_messages_arrive_while_the_loop_waits(lane: sealane.Lane) -> None:
    waiting = asyncio.create_task(take_payloads(lane.consume("orders", "billing"), 3))
    for payload in (b"a", b"b", b"c"):
        await lane.publish("orders", payload)
    assert await waiting == [b"a", b"b", b"c"]


async def test_a_subscription_goes_on_where_its_last_consumer_left_off(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(10)])

    assert await take_payloads(lane.consume("orders", "billing"), 4) == [b"0", b"1", b"2", b"3"]
    assert await take_payloads(lane.consume("orders", "billing", start="latest"), 2) == [b"4", b"5"]


# --- where a new subscription starts ----------------------------------------------------------------------------------


async def test_a_new_subscription_starts_at_the_earliest_message(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"before")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"before"]


async def test_starting_at_the_latest_skips_what_was_there(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"before")
    async with lane.consume("orders", "billing", start="latest") as messages:
        await lane.publish("orders", b"after")
        assert await take_payloads(messages, 1) == [b"after"]


async def test_starting_at_offsets_begins_there_by_partition(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=2)
    for index in range(8):
        await lane.publish("orders", b"%d" % index)
    messages = await take(lane.consume("orders", "billing", start={0: 3, 1: 2}), 3)
    assert sorted((each.partition, each.offset) for each in messages) == [(0, 3), (1, 2), (1, 3)]


async def test_an_offset_beyond_the_end_waits_for_what_comes(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"before")
    async with lane.consume("orders", "billing", start={0: 99}) as messages:
        await lane.publish("orders", b"after")
        assert await take_payloads(messages, 1) == [b"after"]


async def test_starting_at_a_moment_begins_with_the_first_message_from_then_on(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    last = (await take(lane.consume("orders", "look"), 2))[-1]
    moment = last.created + timedelta(microseconds=1)

    async def time_has_passed() -> bool:
        return datetime.now(UTC) > moment

    await eventually(time_has_passed)
    await lane.publish("orders", b"c")

    assert await take_payloads(lane.consume("orders", "from-then", start=moment), 1) == [b"c"]
    assert await take_payloads(lane.consume("orders", "from-long-ago", start=datetime(2020, 1, 1, tzinfo=UTC)), 3) == [
        b"a",
        b"b",
        b"c",
    ]
    async with lane.consume("orders", "from-tomorrow", start=datetime.now(UTC) + timedelta(days=1)) as messages:
        await lane.publish("orders", b"d")
        assert await take_payloads(messages, 1) == [b"d"]


@pytest.mark.parametrize("start", ["newest", {0: -1}, {"0": 1}, {0: "1"}, datetime(2026, 1, 1), 7, None])  # noqa: DTZ001
async def test_a_start_that_is_no_place_is_refused(lane: sealane.Lane, start) -> None:
    with pytest.raises(sealane.InvalidArgument) as refused:
        await take(lane.consume("orders", "billing", start=start), 1)
    assert refused.value.argument == "start"


# --- filters ----------------------------------------------------------------------------------------------------------


async def test_a_filter_chooses_by_key_priority_header_and_time(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", key=b"1", headers={"region": "eu"}, priority=9)
    await lane.publish("orders", b"b", key=b"2", headers={"region": "us"}, priority=1)
    await lane.publish("orders", b"c")

    for filter, expected in {
        "key = '2'": [b"b"],
        "headers['region'] = 'eu' AND priority >= 9": [b"a"],
        "headers['region'] IS NULL": [b"c"],
        "created > TIMESTAMP '2020-01-01 00:00:00' AND NOT headers['region'] = 'eu'": [b"b"],
    }.items():
        name = f"s{abs(hash(filter))}"
        assert await take_payloads(lane.consume("orders", name, filter=filter), len(expected)) == expected
        await all_settled(lane, "orders", name)


async def test_what_a_filter_rejects_never_comes_not_even_after_a_restart(directory: Broker) -> None:
    lane = directory.lane
    for index in range(20):
        await lane.publish("orders", b"%d" % index, priority=1 + index % 2)
    first = lane.consume("orders", "billing", filter="priority = 2")
    assert await take_payloads(first, 5) == [b"1", b"3", b"5", b"7", b"9"]

    lane = await directory.restart()

    second = lane.consume("orders", "billing", filter="priority = 2")
    assert await take_payloads(second, 5) == [b"11", b"13", b"15", b"17", b"19"]


async def test_a_subscription_keeps_its_filter(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", priority=9)
    await take(lane.consume("orders", "billing", filter="priority > 5"), 1)
    with pytest.raises(sealane.ModeConflict, match="its filter is 'priority > 5'"):
        await take(lane.consume("orders", "billing"), 1)


async def test_a_filter_that_cannot_be_understood_says_where(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.FilterError) as refused:
        await take(lane.consume("orders", "billing", filter="priority >> 5"), 1)
    assert refused.value.position == 10
    assert await lane.topics() == []


# --- acks that come by themselves -------------------------------------------------------------------------------------


async def test_an_automatic_ack_is_durable_before_the_message_is_handed_out(directory: Broker) -> None:
    await directory.lane.publish_many("orders", [b"a", b"b", b"c"])
    async for message in directory.lane.consume("orders", "billing", auto_ack=True):
        assert message.payload == b"a"
        assert (await described(directory.lane, "orders", "billing")).positions[0] >= 1
        break

    lane = await directory.restart()

    assert await take_payloads(lane.consume("orders", "billing", auto_ack=True), 2) == [b"b", b"c"]


async def test_with_automatic_acks_what_was_fetched_ahead_still_goes_back(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(100)])

    seen = []
    for _ in range(10):
        seen += [message.payload for message in await take(lane.consume("orders", "billing", auto_ack=True), 10)]
    assert seen == [b"%d" % index for index in range(100)]


async def test_with_automatic_acks_an_ack_is_superfluous_and_a_nack_an_error(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    [message] = await take(lane.consume("orders", "billing", auto_ack=True), 1)
    await message.ack()
    await message.ack(confirm=True)
    with pytest.raises(sealane.InvalidArgument, match="acknowledges automatically"):
        await message.nack()


async def test_batches_can_be_acknowledged_automatically_too(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(100)])
    batches = lane.consume_batches("orders", "billing", messages_max=30, auto_ack=True)
    [batch] = await take(batches, 1)
    assert len(batch) == 30
    assert (await described(lane, "orders", "billing")).positions[0] == 30
    [rest] = await take(lane.consume_batches("orders", "billing", auto_ack=True), 1)
    assert rest.payloads() == [b"%d" % index for index in range(30, 100)]


# --- reading ahead ----------------------------------------------------------------------------------------------------


async def test_a_consumer_holds_no_more_than_it_may_read_ahead(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(100)])
    seen = 0
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", prefetch=7):
            seen += 1
            # What was handed out and not answered yet, and what was read ahead.
            assert (await described(lane, "orders", "billing")).leased <= 7 + seen
            if seen == 50:
                break
    assert message.payload == b"49"


async def test_reading_one_ahead_shares_the_work_evenly(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(4)])
    async with (
        lane.consume("orders", "billing", prefetch=1) as one,
        lane.consume("orders", "billing", prefetch=1) as other,
    ):
        first = await anext(aiter(one))
        second = await anext(aiter(other))
    assert {first.payload, second.payload} == {b"0", b"1"}


@pytest.mark.parametrize("prefetch", [0, -1])
async def test_reading_nothing_ahead_is_refused(lane: sealane.Lane, prefetch: int) -> None:
    with pytest.raises(sealane.InvalidArgument) as refused:
        lane.consume("orders", "billing", prefetch=prefetch)
    assert refused.value.argument == "prefetch"


async def test_messages_that_go_back_while_they_wait_to_be_handed_out_use_up_no_credit(lane: sealane.Lane) -> None:
    seen: list[bytes] = []
    await lane.publish("orders", b"0")
    async with asyncio.timeout(20):
        async for message in lane.consume("orders", "billing", prefetch=2, lease_seconds=0.04, retry=AT_ONCE):
            seen.append(message.payload)
            if len(seen) == 8:
                break
            # Stall until the lease of this one, and of what was read ahead meanwhile, is over.
            await lane.publish("orders", b"%d" % len(seen))
            await working_takes(0.05)


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("mode", {"mode": "shared"}),
        ("lease_seconds", {"lease_seconds": 0}),
        ("lease_seconds", {"lease_seconds": float("nan")}),
        ("lease_seconds", {"lease_seconds": 12 * 3600 + 1}),
        ("retry.attempts_max", {"retry": sealane.Retry(attempts_max=0)}),
        ("retry.delay_seconds", {"retry": sealane.Retry(delay_seconds=-1)}),
        ("retry.delay_seconds_max", {"retry": sealane.Retry(delay_seconds=2, delay_seconds_max=1)}),
    ],
)
async def test_options_that_cannot_work_are_refused_by_name(lane: sealane.Lane, argument: str, options) -> None:
    with pytest.raises(sealane.InvalidArgument) as refused:
        await take(lane.consume("orders", "billing", **options), 1)
    assert refused.value.argument == argument
    assert await lane.topics() == []


async def test_the_most_urgent_comes_first_in_whatever_order_it_was_published(lane: sealane.Lane) -> None:
    priorities = [5, 1, 10, 5, 2, 9, 5, 5, 3]
    for priority in priorities:
        await lane.publish("orders", b"%d" % priority, priority=priority)
    taken = await take(lane.consume("orders", "billing"), len(priorities))
    assert [message.priority for message in taken] == sorted(priorities, reverse=True)


async def test_a_loop_that_was_left_does_not_start_again(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    messages = lane.consume("orders", "billing")
    await take(messages, 1)
    with pytest.raises(sealane.Closed, match="consume again"):
        await take(messages, 1)


@pytest.mark.parametrize("kind", ["messages", "batches"])
async def test_who_waits_for_the_next_one_hears_that_another_task_has_closed_the_consumer(
    lane: sealane.Lane, kind: str
) -> None:
    await lane.create_topic("orders")
    consume = lane.consume if kind == "messages" else lane.consume_batches
    async with consume("orders", "billing") as items:

        async def next_one() -> None:
            await anext(aiter(items))

        waiting = asyncio.create_task(next_one())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await items.close()
        with pytest.raises(sealane.Closed, match="has ended"):
            await asyncio.wait_for(waiting, 10)
