"""Consuming in batches: whole, by message, to Arrow."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.message import SCHEMA
from tests.scenarios.broker import AT_ONCE, Broker, all_settled, described, take, take_payloads

PAYLOADS = [b"%d" % index for index in range(1_000)]


async def test_a_batch_is_as_large_as_asked_for_at_most(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS)
    got: list[bytes] = []
    async with asyncio.timeout(10):
        async for batch in lane.consume_batches("orders", "etl", messages_max=300):
            assert 0 < len(batch) <= 300
            assert batch.offsets() == list(range(len(got), len(got) + len(batch)))
            assert batch.first_offset == len(got)
            got += batch.payloads()
            await batch.ack()
            if len(got) == 1_000:
                break
    assert got == PAYLOADS
    await all_settled(lane, "orders", "etl")


async def test_small_publishes_are_gathered_into_one_batch(lane: sealane.Lane) -> None:
    for payload in PAYLOADS[:50]:
        await lane.publish("orders", payload)
    [batch] = await take(lane.consume_batches("orders", "etl"), 1)
    assert batch.payloads() == PAYLOADS[:50]
    assert (batch.topic, batch.partition, len(batch)) == ("default/orders", 0, 50)
    assert "default/orders:0@0, 50 messages" in repr(batch)


async def test_a_batch_becomes_arrow_with_all_columns(lane: sealane.Lane) -> None:
    receipt = await lane.publish("orders", b"a", key=b"k", headers={"region": "eu"}, priority=5)
    await lane.publish("orders", b"b")
    [batch] = await take(lane.consume_batches("orders", "etl"), 1)

    records = batch.to_arrow()
    assert records.schema == SCHEMA
    assert records.column("payload").to_pylist() == [b"a", b"b"]
    assert records.column("key").to_pylist() == [b"k", None]
    assert records.column("headers").to_pylist() == [[("region", "eu")], None]
    assert records.column("id")[0].as_py() == receipt.id.bytes


async def test_what_came_as_arrow_can_be_published_as_it_is(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", key=b"k", headers={"region": "eu"}, priority=7)
    [batch] = await take(lane.consume_batches("orders", "copy"), 1)
    await lane.publish_many("copies", batch.to_arrow())
    [copy] = await take(lane.consume("copies", "s"), 1)
    assert (copy.payload, copy.key, copy.headers, copy.priority) == (b"a", b"k", {"region": "eu"}, 7)


async def test_a_confirmed_batch_never_comes_again(directory: Broker) -> None:
    await directory.lane.publish_many("orders", PAYLOADS)
    [batch] = await take(directory.lane.consume_batches("orders", "etl", messages_max=400), 1)
    await batch.ack(confirm=True)

    lane = await directory.restart()

    [rest] = await take(lane.consume_batches("orders", "etl"), 1)
    assert rest.payloads() == PAYLOADS[len(batch) :]


async def test_a_nacked_batch_comes_again_whole(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS[:10])
    [batch] = await take(lane.consume_batches("orders", "etl"), 1)
    await batch.nack(delay=0, reason="no room")
    [again] = await take(lane.consume_batches("orders", "etl"), 1)
    assert again.payloads() == PAYLOADS[:10]
    assert {message.attempt for message in again} == {2}


async def test_messages_of_a_batch_can_be_answered_one_by_one(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS[:10])
    [batch] = await take(lane.consume_batches("orders", "etl"), 1)
    for message in batch:
        if int(message.payload) % 2:
            await message.nack(delay=0)
        else:
            await message.ack()

    retried = await take(lane.consume("orders", "etl"), 5)
    assert [int(message.payload) for message in retried] == [1, 3, 5, 7, 9]
    assert {message.attempt for message in retried} == {2}


async def test_a_batch_is_extended_as_one(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS[:10])
    [batch] = await take(lane.consume_batches("orders", "etl", lease_seconds=1, retry=AT_ONCE), 1)
    await batch.extend(60)
    await lane.publish("orders", b"timer")
    timers = await take(lane.consume("orders", "etl", lease_seconds=0.6, retry=AT_ONCE), 3)
    assert [(each.payload, each.attempt) for each in timers] == [(b"timer", 1), (b"timer", 2), (b"timer", 3)]
    await batch.ack(confirm=True)


async def test_a_batch_whose_lease_is_over_cannot_be_acked(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS[:10])
    [first] = await take(lane.consume_batches("orders", "etl", lease_seconds=0.05, retry=AT_ONCE), 1)
    [again] = await take(lane.consume_batches("orders", "etl", retry=AT_ONCE), 1)
    with pytest.raises(sealane.LeaseLost, match="10 messages"):
        await first.ack(confirm=True)
    await again.ack(confirm=True)
    assert (await described(lane, "orders", "etl")).depth == 0


async def test_leaving_gives_the_unhandled_batches_back(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS)
    [batch] = await take(lane.consume_batches("orders", "etl", messages_max=100), 1)
    await batch.ack(confirm=True)
    rest = await take(lane.consume("orders", "etl"), 900)
    assert [(message.payload, message.attempt) for message in rest] == [(payload, 1) for payload in PAYLOADS[100:]]


@pytest.mark.parametrize(
    ("argument", "options"), [("messages_max", {"messages_max": 0}), ("prefetch", {"prefetch": 0})]
)
async def test_batches_of_nothing_are_refused(lane: sealane.Lane, argument: str, options) -> None:
    with pytest.raises(sealane.InvalidArgument) as refused:
        lane.consume_batches("orders", "etl", **options)
    assert refused.value.argument == argument


async def test_batches_keep_the_order_of_keys(lane: sealane.Lane) -> None:
    for index in range(30):
        await lane.publish("orders", b"%d" % index, key=b"%d" % (index % 3))
    loop = lane.consume_batches("orders", "etl", mode="key-shared", messages_max=10)
    handled = []
    async with asyncio.timeout(10):
        async for batch in loop:
            handled += batch.payloads()
            await batch.ack()
            if len(handled) == 30:
                break
    for key in range(3):
        mine = [int(payload) for payload in handled if int(payload) % 3 == key]
        assert mine == sorted(mine)
    assert len(handled) == 30


async def test_a_lane_is_usable_beside_a_batch_consumer(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", PAYLOADS)
    one, other = lane.consume_batches("orders", "a"), lane.consume("orders", "b")
    [batch], payloads = await asyncio.gather(take(one, 1), take_payloads(other, 1_000))
    assert batch.payloads() == payloads == PAYLOADS
