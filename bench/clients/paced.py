"""Single messages at a pace that leaves the node time: how long each took to its receipt, and to its arrival."""

from __future__ import annotations

import asyncio
import os
import struct
import time

import sealane
from bench.clients.order import Order, Result, done, wait_for_the_start
from bench.pacing import at_a_pace

MOMENT = struct.Struct("<q")


async def publish_at_a_pace(lane: sealane.Lane, order: Order) -> Result:
    """Single publishes, so many a second, whether or not those before them are done. Each carries its moment."""
    padding = os.urandom(order.size - MOMENT.size)
    took_ms: list[float] = []
    await lane.publish(order.topic, MOMENT.pack(0))  # The first one of all opens connections and files.
    begun_ns = wait_for_the_start()

    async def publish() -> None:
        moment_ns = time.monotonic_ns()
        await lane.publish(order.topic, MOMENT.pack(moment_ns) + padding)
        took_ms.append((time.monotonic_ns() - moment_ns) / 1e6)

    async with asyncio.TaskGroup() as publishing:
        async for _ in at_a_pace(order.count, order.per_second):
            publishing.create_task(publish())
    return done(begun_ns, took_ms=took_ms)


async def receive_at_a_pace(lane: sealane.Lane, order: Order) -> Result:
    took_ms: list[float] = []
    async with lane.consume(order.topic, order.subscription, start=order.start) as messages:
        begun_ns = wait_for_the_start()
        async for message in messages:
            now_ns = time.monotonic_ns()
            moment_ns = MOMENT.unpack_from(message.payload)[0]
            await message.ack()
            if moment_ns:
                took_ms.append((now_ns - moment_ns) / 1e6)
            if len(took_ms) == order.count:
                await message.ack(confirm=True)
                break
    return done(begun_ns, took_ms=took_ms)
