"""Transactions: publishes and acks that become visible together, once under their id."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.message import Limits
from sealane.node import NodeSettings
from tests.scenarios.broker import AT_ONCE, Broker, all_settled, described, take, take_payloads


async def test_publishes_and_acks_take_effect_together(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"order")
    [order] = await take(lane.consume("orders", "billing"), 1)

    async with lane.transaction("order-42") as transaction:
        await transaction.publish("invoices", b"invoice", key=b"42", headers={"region": "eu"}, priority=7)
        await transaction.publish_many("letters", [b"one", b"two"])
        await transaction.ack(order)
        assert "default/invoices" not in await lane.topics()
        assert (await described(lane, "orders", "billing")).depth == 1

    assert transaction.replayed is False
    [invoice] = await take(lane.consume("invoices", "s"), 1)
    assert (invoice.payload, invoice.key, invoice.headers, invoice.priority) == (b"invoice", b"42", {"region": "eu"}, 7)
    assert await take_payloads(lane.consume("letters", "s"), 2) == [b"one", b"two"]
    assert (await described(lane, "orders", "billing")).depth == 0


async def test_they_span_partitions_and_topics(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)
    await lane.create_topic("invoices", partitions=3)
    for index in range(12):
        await lane.publish("orders", b"%d" % index, key=b"%d" % index)
    orders = await take(lane.consume("orders", "billing"), 12)
    assert len({order.partition for order in orders}) == 3

    async with lane.transaction("t") as transaction:
        for order in orders:
            await transaction.publish("invoices", order.payload, key=order.key)
            await transaction.ack(order)

    invoices = await take(lane.consume("invoices", "s"), 12)
    assert len({invoice.partition for invoice in invoices}) == 3
    assert (await described(lane, "orders", "billing")).depth == 0


async def test_a_repeated_id_changes_nothing_and_says_so(lane: sealane.Lane) -> None:
    for attempt in range(3):
        async with lane.transaction("order-42") as transaction:
            await transaction.publish("invoices", b"invoice")
        assert transaction.replayed is (attempt > 0)
    await lane.publish("invoices", b"last")
    assert await take_payloads(lane.consume("invoices", "s"), 2) == [b"invoice", b"last"]


async def test_an_id_is_remembered_across_restarts(directory: Broker) -> None:
    async with directory.lane.transaction("order-42") as transaction:
        await transaction.publish("invoices", b"invoice")
    lane = await directory.restart()
    async with lane.transaction("order-42") as transaction:
        await transaction.publish("invoices", b"invoice")
    assert transaction.replayed
    assert (await lane.describe_topic("invoices")).partitions[0].end == 1


async def test_of_two_at_the_same_time_one_takes_effect(lane: sealane.Lane) -> None:
    async def run() -> bool:
        async with lane.transaction("order-42") as transaction:
            await transaction.publish("invoices", b"invoice")
        return transaction.replayed

    assert sorted(await asyncio.gather(*(run() for _ in range(5)))) == [False, True, True, True, True]
    assert (await lane.describe_topic("invoices")).partitions[0].end == 1


async def test_an_exception_in_the_block_leaves_everything_as_it_was(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"order")
    [order] = await take(lane.consume("orders", "billing"), 1)
    with pytest.raises(ZeroDivisionError):
        async with lane.transaction("order-42") as transaction:
            await transaction.publish("invoices", b"invoice")
            await transaction.ack(order)
            raise ZeroDivisionError
    assert "default/invoices" not in await lane.topics()
    assert (await described(lane, "orders", "billing")).depth == 1

    async with lane.transaction("order-42") as transaction:
        await transaction.publish("invoices", b"invoice")
        await transaction.ack(order)
    assert transaction.replayed is False
    await all_settled(lane, "orders", "billing")


async def test_a_lost_lease_aborts_it_whole(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"order")
    [late] = await take(lane.consume("orders", "billing", lease_seconds=0.05, retry=AT_ONCE), 1)
    [current] = await take(lane.consume("orders", "billing", retry=AT_ONCE), 1)
    with pytest.raises(sealane.TransactionAborted) as aborted:
        async with lane.transaction("order-42") as transaction:
            await transaction.publish("invoices", b"invoice")
            await transaction.ack(late)
    assert isinstance(aborted.value.__cause__, sealane.LeaseLost)
    assert aborted.value.transaction == "order-42"

    async with lane.transaction("order-42") as transaction:
        await transaction.publish("invoices", b"invoice")
        await transaction.ack(current)
    assert transaction.replayed is False
    assert (await lane.describe_topic("invoices")).partitions[0].end == 1


async def test_a_full_queue_aborts_it_whole(lane: sealane.Lane) -> None:
    await lane.create_topic("invoices", messages_max=1)
    async with lane.consume("invoices", "s"):
        pass
    await lane.publish("invoices", b"first")
    await lane.publish("orders", b"order")
    [order] = await take(lane.consume("orders", "billing"), 1)

    with pytest.raises(sealane.TransactionAborted) as aborted:
        async with lane.transaction("order-42") as transaction:
            await transaction.publish("letters", b"letter")
            await transaction.publish("invoices", b"invoice")
            await transaction.ack(order)

    assert isinstance(aborted.value.__cause__, sealane.QueueFull)
    assert (await lane.describe_topic("letters")).partitions[0].end == 0
    await order.ack(confirm=True)


async def test_a_message_that_breaks_a_limit_is_refused_where_it_is_given(lane: sealane.Lane) -> None:
    async with lane.transaction("order-42") as transaction:
        with pytest.raises(sealane.LimitExceeded):
            await transaction.publish("invoices", b"x" * (1024 * 1024 + 1))
        await transaction.publish("invoices", b"small")
    assert await take_payloads(lane.consume("invoices", "s"), 1) == [b"small"]


async def test_what_it_puts_together_is_stored_in_batches_within_the_limits(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(limits=Limits(batch_bytes_max=20_000, batch_messages_max=40)))
    async with lane.transaction("t") as transaction:
        for _ in range(5):
            await transaction.publish_many("orders", [b"x" * 400] * 30)
    at = 0
    while read := await lane.browse("orders", 0, at):
        assert all(len(each.batch) <= 40 and each.batch.nbytes <= 20_000 for each in read)
        assert read[-1].stop > at
        at = read[-1].stop
    assert at == 150


async def test_a_batch_can_be_acknowledged_in_one(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    [batch] = await take(lane.consume_batches("orders", "etl"), 1)
    async with lane.transaction("t") as transaction:
        await transaction.ack(batch)
        await transaction.publish("sums", b"3")
    assert (await described(lane, "orders", "etl")).depth == 0


async def test_given_ids_are_stored_once_in_a_transaction_too(lane: sealane.Lane) -> None:
    given = "01890000-0000-7000-8000-00000000002a"
    await lane.publish("invoices", b"first", id=given)
    async with lane.transaction("t") as transaction:
        await transaction.publish("invoices", b"second", id=given)
        await transaction.publish("letters", b"letter")
    assert (await lane.describe_topic("invoices")).partitions[0].end == 1
    assert (await lane.describe_topic("letters")).partitions[0].end == 1


async def test_it_survives_a_restart_whole(directory: Broker) -> None:
    await directory.lane.publish("orders", b"order")
    [order] = await take(directory.lane.consume("orders", "billing"), 1)
    async with directory.lane.transaction("t") as transaction:
        await transaction.publish("invoices", b"invoice")
        await transaction.ack(order)

    lane = await directory.restart()

    assert (await described(lane, "orders", "billing")).depth == 0
    assert await take_payloads(lane.consume("invoices", "s"), 1) == [b"invoice"]


async def test_memory_and_durable_topics_do_not_mix(directory: Broker) -> None:
    lane = directory.lane
    await lane.create_topic("scratch", durable=False)
    with pytest.raises(sealane.TransactionAborted, match="memory"):
        async with lane.transaction("t") as transaction:
            await transaction.publish("scratch", b"a")
            await transaction.publish("invoices", b"b")
    async with lane.transaction("t") as transaction:
        await transaction.publish("scratch", b"a")
    assert transaction.replayed is False
    assert (await lane.describe_topic("invoices")).partitions[0].end == 0


@pytest.mark.parametrize("id", ["", "x" * 257])
async def test_an_id_has_a_length(lane: sealane.Lane, id: str) -> None:
    with pytest.raises(sealane.InvalidArgument, match="1 to 256 characters"):
        async with lane.transaction(id) as transaction:
            await transaction.publish("invoices", b"invoice")


async def test_it_is_used_inside_its_block_only(lane: sealane.Lane) -> None:
    transaction = lane.transaction("t")
    with pytest.raises(sealane.Closed, match="inside"):
        await transaction.publish("invoices", b"early")
    async with transaction:
        pass
    with pytest.raises(sealane.Closed):
        await transaction.publish("invoices", b"late")
