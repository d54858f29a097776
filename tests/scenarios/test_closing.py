"""After closing, everything says that it is closed; and closing is quick, complete and repeatable."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from tests.scenarios.broker import Broker, take, take_payloads


async def test_every_call_on_a_closed_lane_says_so(broker: Broker) -> None:
    lane = broker.lane
    producer = lane.producer("orders")
    transaction = lane.transaction("t")
    await lane.publish("orders", b"a")
    await lane.close()
    await lane.close()

    for call in (
        lambda: lane.publish("orders", b"a"),
        lambda: lane.publish_many("orders", [b"a"]),
        lambda: lane.publish_to("exchange", "key", b"a"),
        lambda: take(lane.consume("orders", "s"), 1),
        lambda: take(lane.consume_batches("orders", "s"), 1),
        lambda: lane.create_topic("orders"),
        lambda: lane.configure_topic("orders", partitions=2),
        lambda: lane.delete_topic("orders"),
        lambda: lane.topics(),
        lambda: lane.describe_topic("orders"),
        lambda: lane.unsubscribe("orders", "s"),
        lambda: lane.seek("orders", "s", "earliest"),
        lambda: lane.redrive("orders", "s"),
        lambda: lane.declare_exchange("exchange"),
        lambda: lane.bind("exchange", "orders"),
        lambda: lane.unbind("exchange", "orders"),
        lambda: use(producer),
        lambda: commit(transaction),
    ):
        with pytest.raises(sealane.Closed):
            await call()
    for make in (lambda: lane.producer("orders"), lambda: lane.transaction("t")):
        with pytest.raises(sealane.Closed):
            make()


async def use(producer: sealane.Producer) -> None:
    async with producer:
        await producer.send(b"a")


async def commit(transaction: sealane.Transaction) -> None:
    async with transaction:
        await transaction.publish("orders", b"a")


async def test_a_waiting_loop_ends_when_the_lane_is_closed(broker: Broker) -> None:
    await broker.lane.publish("orders", b"a")
    started = asyncio.Event()

    async def work() -> None:
        async for message in broker.lane.consume("orders", "billing"):
            await message.ack()
            started.set()

    task = asyncio.create_task(work())
    await started.wait()
    await broker.lane.close()
    with pytest.raises(sealane.Closed):
        await task


async def test_an_answer_after_closing_says_that_it_is_too_late(broker: Broker) -> None:
    await broker.lane.publish("orders", b"a")
    [message] = await take(broker.lane.consume("orders", "billing"), 1)
    await broker.lane.close()
    for answer in (message.ack(), message.ack(confirm=True), message.nack(), message.extend(1)):
        with pytest.raises(sealane.Closed):
            await answer


async def test_a_publish_under_way_when_the_broker_closes_ends_one_way_or_the_other(broker: Broker) -> None:
    await broker.lane.publish("orders", b"before")
    publishing = [asyncio.create_task(broker.lane.publish("orders", b"%d" % index)) for index in range(10)]
    await asyncio.sleep(0)
    await broker.stop()
    outcomes = await asyncio.wait_for(asyncio.gather(*publishing, return_exceptions=True), 10)
    assert all(isinstance(outcome, sealane.Receipt | sealane.Closed) for outcome in outcomes)
    stored = sum(isinstance(outcome, sealane.Receipt) for outcome in outcomes)
    if broker.path is not None:
        lane = await broker.start()
        assert len(await take_payloads(lane.consume("orders", "s"), 1 + stored)) == 1 + stored


async def test_an_error_in_the_block_closes_the_broker_and_comes_through(broker: Broker) -> None:
    path = None if broker.path is None else broker.path.with_name("other")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with sealane.embedded(path) as lane:
                await lane.publish("orders", b"a")
                raise ZeroDivisionError


async def test_two_lanes_in_memory_know_nothing_of_each_other() -> None:
    async with sealane.embedded() as one, sealane.embedded() as other:
        await one.publish("orders", b"a")
        assert await other.topics() == []
