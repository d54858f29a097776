"""Messages in batches: one producer, one consumer, ten that each get everything, several that share."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import sealane
from bench.clients.order import Order, Result, done, wait_for_the_start
from bench.pacing import at_a_pace
from sealane.client.consumer import BatchConsumption

BATCHES_IN_FLIGHT, SMALL_BATCHES_IN_FLIGHT = 16, 48
"""On their way at a time: with a third or less of them a fifth to a third of the throughput is lost."""
SMALL_BATCH = 1_000
"""Below so many messages a batch is small."""
BYTES_IN_FLIGHT_MAX = 12 << 20
"""With more, large batches wait in the node's memory for longer than anybody gains by it."""

SILENCE_SECONDS = 2.0
"""A consumer that shares a subscription cannot know which message is the last: it ends after this much silence."""


async def publish_many(lane: sealane.Lane, order: Order) -> Result:
    """So many batches, a few of them on their way at a time."""
    payloads = order.payloads(order.batch)
    pays = BATCHES_IN_FLIGHT if order.batch >= SMALL_BATCH else SMALL_BATCHES_IN_FLIGHT
    in_flight = order.in_flight or min(pays, max(1, BYTES_IN_FLIGHT_MAX // (order.batch * order.size)))
    room = asyncio.Semaphore(in_flight)
    # Named only where it is asked for: earlier revisions, which are compared with this one, do not know it.
    sealing: dict[str, Any] = {"seal_for": order.seal_for} if order.seal_for else {}
    begun_ns = wait_for_the_start()

    async def publish() -> None:
        try:
            await lane.publish_many(order.topic, payloads, **sealing)
        finally:
            room.release()

    async with asyncio.TaskGroup() as publishing:
        for _ in range(order.count // order.batch):
            await room.acquire()
            publishing.create_task(publish())
    return done(begun_ns)


async def publish_many_at_a_pace(lane: sealane.Lane, order: Order) -> Result:
    """So many batches a second, whether or not those before them are done."""
    payloads = order.payloads(order.batch)
    begun_ns = wait_for_the_start()
    async with asyncio.TaskGroup() as publishing:
        async for _ in at_a_pace(order.count // order.batch, order.per_second):
            publishing.create_task(lane.publish_many(order.topic, payloads))
    return done(begun_ns)


async def consume_batches(lane: sealane.Lane, order: Order) -> Result:
    """Every message of the subscription; the last ack is confirmed."""
    received = 0
    async with _consuming(lane, order) as batches:
        begun_ns = wait_for_the_start()
        async for messages in batches:
            received += len(messages)
            if order.open_with:
                messages.payloads()  # Opened when they are looked at.
            await messages.ack(confirm=received == order.count)
            if received == order.count:
                break
    return done(begun_ns)


async def share_batches(lane: sealane.Lane, order: Order) -> Result:
    """A share of a subscription that others consume too, until nothing more comes.

    Every ack is confirmed, but none is waited for. The end is when the last confirmation came; `received` counts those
    that were confirmed.
    """
    received = 0
    ended_ns = 0
    acks: set[asyncio.Task[None]] = set()

    async def confirm(messages: sealane.MessageBatch) -> None:
        nonlocal received, ended_ns
        await messages.ack(confirm=True)
        received += len(messages)
        ended_ns = time.monotonic_ns()

    clock = asyncio.get_running_loop().time
    async with _consuming(lane, order) as batches:
        begun_ns = ended_ns = wait_for_the_start()
        try:
            async with asyncio.timeout(SILENCE_SECONDS) as silence:
                async for messages in batches:
                    silence.reschedule(clock() + SILENCE_SECONDS)
                    acks.add(task := asyncio.create_task(confirm(messages)))
                    task.add_done_callback(acks.discard)
        except TimeoutError:
            await asyncio.gather(*acks)
    return {"begun_ns": begun_ns, "ended_ns": ended_ns, "received": received}


async def consume_broadcast(order: Order) -> Result:
    """Several consumers, each on a connection of its own, and each gets everything."""
    async with AsyncExitStack() as open_lanes:
        lanes = [await open_lanes.enter_async_context(sealane.connect(order.url)) for _ in range(order.connections)]
        consumptions = [
            await open_lanes.enter_async_context(
                each.consume_batches(order.topic, order.subscription, mode="broadcast", messages_max=order.batch)
            )
            for each in lanes
        ]
        begun_ns = wait_for_the_start()

        async def consume(batches: BatchConsumption) -> None:
            received = 0
            async for messages in batches:
                received += len(messages)
                await messages.ack(confirm=received == order.count)
                if received == order.count:
                    break

        async with asyncio.TaskGroup() as consuming:
            for batches in consumptions:
                consuming.create_task(consume(batches))
        return done(begun_ns)


def _consuming(lane: sealane.Lane, order: Order) -> BatchConsumption:
    messages_max = max(order.batch, SMALL_BATCH)
    opening: dict[str, Any] = {}
    if order.open_with:
        from sealane.security.envelopes import PrivateKey

        opening["keys"] = PrivateKey.from_pem(Path(order.open_with).read_bytes())
    return lane.consume_batches(
        order.topic, order.subscription, start=order.start, messages_max=messages_max, **opening
    )
