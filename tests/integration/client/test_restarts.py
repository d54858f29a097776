"""A node that is killed and started again under load: publishes are stored once and in order, consumers go on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import sealane
from tests.integration.client.node_process import NodeProcess

DEADLINE_SECONDS = 90.0
RESTARTS = int(os.environ.get("RESTARTS", "3"))
"""More of them for whoever has the time: a hundred take three minutes."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[NodeProcess]:
    async with NodeProcess(tmp_path) as running:
        yield running


class Load:
    """What users do meanwhile, and what they were told."""

    def __init__(self, lane: sealane.Lane) -> None:
        self.lane = lane
        self.published: dict[int, int] = {}
        """Number → offset, once its publish had returned."""
        self.sent = 0
        self.confirmed: set[int] = set()
        self.unsure: set[int] = set()
        """Their connection was lost before the node's word: they may be settled, or come again."""
        self.broken_promises: list[str] = []
        self.seen: Counter[int] = Counter()
        self.moved: Counter[int] = Counter()
        self.stopping = asyncio.Event()

    async def publish(self) -> None:
        for number in count():
            if self.stopping.is_set():
                return
            receipt = await self.lane.publish("work", b"%d" % number)
            self.published[number] = receipt.offset

    async def produce(self) -> None:
        async with self.lane.producer("stream") as producer:
            for number in count():
                if self.stopping.is_set():
                    break
                await producer.send(b"%d" % number)
                self.sent = number + 1
                if not number % 100:
                    await asyncio.sleep(0)

    async def confirm(self) -> None:
        async for message in self.lane.consume("work", "confirming", prefetch=50):
            number = int(message.payload)
            if number in self.confirmed:
                self.broken_promises.append(f"{number} came again after its confirmed ack")
            try:
                await message.ack(confirm=True)
            except sealane.LeaseLost:
                self.unsure.add(number)
            else:
                self.confirmed.add(number)

    async def watch(self) -> None:
        async for batch in self.lane.consume_batches("work", "watching", mode="broadcast"):
            self.seen.update(int(payload) for payload in batch.payloads())
            await batch.ack()

    async def move(self) -> None:
        async for message in self.lane.consume("work", "moving", prefetch=10):
            with suppress(sealane.TransactionAborted):
                async with self.lane.transaction(f"move {int(message.payload)}") as transaction:
                    await transaction.publish("moved", message.payload)
                    await transaction.ack(message)

    def progress(self) -> tuple[int, ...]:
        return (len(self.published), self.sent, len(self.confirmed), self.seen.total())


async def stored(lane: sealane.Lane, topic: str) -> list[int]:
    """Every payload in the topic's log, by offset."""
    numbers: list[int] = []
    while batches := await lane.browse(topic, 0, len(numbers)):
        for base, batch in batches:
            assert base == len(numbers)
            numbers.extend(int(payload) for payload in batch.payloads())
    return numbers


async def settled(lane: sealane.Lane, subscription: str) -> None:
    """Until nothing is left to do on the subscription."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found = (await lane.describe_topic("work")).subscriptions
            if next(each for each in found if each.name == subscription).depth == 0:
                return
            await asyncio.sleep(0.01)


async def until(condition, what: str) -> None:
    stop = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < stop, f"{what} did not come to pass within {DEADLINE_SECONDS:g} s"
        await asyncio.sleep(0.01)


async def everything_flows(load: Load) -> None:
    before = load.progress()
    await until(lambda: all(now > then for now, then in zip(load.progress(), before, strict=True)), "progress of all")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
async def test_nothing_is_lost_doubled_or_out_of_order(node: NodeProcess, how: signal.Signals) -> None:
    async with sealane.connect(node.url, timeout=DEADLINE_SECONDS) as lane:
        load = Load(lane)
        publishing = [asyncio.create_task(work()) for work in (load.publish, load.produce)]
        consuming = [asyncio.create_task(work()) for work in (load.confirm, load.watch, load.move)]
        await everything_flows(load)
        for _ in range(RESTARTS):
            await node.restart(how)
            await everything_flows(load)
        load.stopping.set()
        await asyncio.gather(*publishing)
        numbers = set(range(len(load.published)))

        await until(lambda: load.confirmed | load.unsure == numbers, "the end of every message")
        await until(lambda: set(load.seen) == numbers, "the broadcast of every message")
        for subscription in ("confirming", "moving"):
            await settled(lane, subscription)
        work, stream = await stored(lane, "work"), await stored(lane, "stream")
        for each in consuming:
            assert not each.done(), each.exception()
            each.cancel()
        await asyncio.wait(consuming)

    assert work == sorted(numbers), "each once, in order"
    assert all(work[offset] == number for number, offset in load.published.items()), "receipts are true"
    assert stream == list(range(load.sent))
    assert load.broken_promises == []


@pytest.mark.slow
async def test_a_transaction_happens_once_whatever_happens_to_the_node(node: NodeProcess) -> None:
    total = 300
    async with sealane.connect(node.url, timeout=DEADLINE_SECONDS) as lane:
        await lane.publish_many("work", [b"%d" % number for number in range(total)])
        load = Load(lane)
        moving = asyncio.create_task(load.move())
        for _ in range(3):
            await asyncio.sleep(0)
            await node.restart()

        async def moved() -> int:
            with suppress(sealane.TopicNotFound):
                return (await lane.describe_topic("moved")).partitions[0].end
            return 0

        async with asyncio.timeout(DEADLINE_SECONDS):
            while await moved() < total:
                assert not moving.done(), moving.exception()
                await asyncio.sleep(0.01)
        moving.cancel()
        await asyncio.wait([moving])

        assert sorted(await stored(lane, "moved")) == list(range(total))
