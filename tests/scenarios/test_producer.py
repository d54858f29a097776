"""A producer sends one message at a time at the speed of batches."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.client import producer as producing
from sealane.client.producer import Producer
from sealane.message import Limits
from sealane.node.outgoing import Outgoing
from sealane.node.surroundings import Surroundings
from tests.scenarios.broker import Broker, eventually, take, take_payloads


async def test_leaving_the_block_means_durable_and_in_order(directory: Broker) -> None:
    payloads = [b"%d" % index for index in range(12_000)]
    async with directory.lane.producer("orders") as producer:
        for payload in payloads:
            await producer.send(payload)

    lane = await directory.restart()

    assert await take_payloads(lane.consume("orders", "billing"), 12_000) == payloads


async def test_a_flush_means_durable(lane: sealane.Lane) -> None:
    async with lane.producer("orders") as producer:
        for index in range(100):
            await producer.send(b"%d" % index)
        await producer.flush()
        assert (await lane.describe_topic("orders")).partitions[0].end == 100
        await producer.flush()
        await producer.send(b"100")
    assert (await lane.describe_topic("orders")).partitions[0].end == 101


async def test_messages_leave_without_a_flush(lane: sealane.Lane) -> None:
    async with lane.consume("orders", "billing") as messages, lane.producer("orders") as producer:
        await producer.send(b"a")
        assert await take_payloads(messages, 1) == [b"a"]


async def test_a_message_is_sent_with_every_option(lane: sealane.Lane) -> None:
    async with lane.producer("orders") as producer:
        await producer.send(b"a", key=b"k", headers={"region": "eu"}, priority=9, ttl=60)
        await producer.send(b"later", delay=0.05)
    first, second = await take(lane.consume("orders", "billing"), 2)
    assert (first.payload, first.key, first.headers, first.priority) == (b"a", b"k", {"region": "eu"}, 9)
    assert second.payload == b"later"


@pytest.mark.parametrize("every", [1, 2, 7, 999])
async def test_messages_with_a_key_and_without_stay_in_order(lane: sealane.Lane, every: int) -> None:
    sent = [(b"%d" % index, None if index % every else b"k%d" % index) for index in range(1, 3_000)]
    async with lane.producer("orders") as producer:
        for payload, key in sent:
            await producer.send(payload, key=key)
            if payload == b"1500":
                await producer.flush()
    received = await take(lane.consume("orders", "billing"), len(sent))
    assert [(message.payload, message.key) for message in received] == sent


async def test_a_message_that_breaks_a_rule_is_refused_and_the_producer_goes_on(lane: sealane.Lane) -> None:
    async with lane.producer("orders") as producer:
        await producer.send(b"good")
        for wrong in ({"payload": "text"}, {"payload": b"", "ttl": 0}, {"payload": b"", "delay": -1}):
            with pytest.raises(sealane.InvalidMessage):
                await producer.send(**wrong)
        await producer.send(b"good too")
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"good", b"good too"]


async def test_a_message_over_a_limit_fails_the_producer_which_says_so(lane: sealane.Lane) -> None:
    producer = lane.producer("orders")
    with pytest.raises(sealane.LimitExceeded) as refused:
        async with producer:
            await producer.send(b"x" * (1024 * 1024 + 1))
            await producer.flush()
    assert refused.value.field == "payload"


async def test_nothing_after_a_failed_batch_is_stored(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", messages_max=1_000)
    await take_nothing(lane)
    producer = lane.producer("orders")
    with pytest.raises(sealane.QueueFull):
        async with producer:
            for index in range(producing.BATCH_MESSAGES + 10):
                await producer.send(b"%d" % index)
    assert (await lane.describe_topic("orders")).partitions[0].end == 0
    with pytest.raises(sealane.QueueFull):
        await producer.send(b"again")


async def take_nothing(lane: sealane.Lane) -> None:
    """Make the subscription whose backlog is limited."""
    async with lane.consume("orders", "billing"):
        pass


async def test_a_block_that_ends_in_an_error_does_not_wait_and_sends_no_more(lane: sealane.Lane) -> None:
    producer = lane.producer("orders")
    with pytest.raises(ZeroDivisionError):
        async with producer:
            await producer.send(b"a")
            raise ZeroDivisionError
    with pytest.raises(sealane.Closed):
        await producer.send(b"b")
    await lane.publish("orders", b"c")
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"c"]


async def test_a_closed_producer_says_so(lane: sealane.Lane) -> None:
    async with lane.producer("orders") as producer:
        pass
    for call in (producer.send(b"a"), producer.flush()):
        with pytest.raises(sealane.Closed):
            await call


async def test_several_producers_do_not_disturb_each_other(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)

    async def produce(name: int) -> None:
        async with lane.producer("orders") as producer:
            for index in range(100):
                await producer.send(b"%d %d" % (name, index), key=b"%d" % name)
                await asyncio.sleep(0)

    await asyncio.gather(*(produce(name) for name in range(5)))

    payloads = await take_payloads(lane.consume("orders", "billing"), 500)
    for name in range(5):
        mine = [payload for payload in payloads if payload.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, index) for index in range(100)]


async def test_memory_is_bounded_while_the_broker_is_slow() -> None:
    """With a broker that answers nothing, `send` waits once the buffers are full."""
    arrived: list[int] = []
    answer = asyncio.Event()

    async def publish(batch):
        arrived.append(len(batch))
        await answer.wait()

    producer = Producer(Outgoing(Limits(), Surroundings(lambda: 0, bytes)), publish, bytes(16))
    sent = 0

    async def produce() -> None:
        nonlocal sent
        async with producer:
            for _ in range(100_000):
                await producer.send(b"x" * 100)
                sent += 1

    task = asyncio.create_task(produce())

    async def all_are_on_their_way() -> bool:
        return len(arrived) == producing.BATCHES_IN_FLIGHT

    await eventually(all_are_on_their_way)
    before = sent
    assert before <= (producing.BATCHES_IN_FLIGHT + 1) * producing.BATCH_MESSAGES
    answer.set()
    await task
    assert (sent, sum(arrived)) == (100_000, 100_000)
