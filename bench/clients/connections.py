"""Many connections that do nothing but stay."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import sealane
from bench.clients.order import Order, Result, done, wait_for_the_start

AT_ONCE = 50
"""So many are opened at a time: a node answers a crowd, but not all of it within one connection's patience."""


async def stay_connected(order: Order) -> Result:
    """Open them all, say that they are there, and hold them until standard input says another line, or ends."""
    async with AsyncExitStack() as open_lanes:
        room = asyncio.Semaphore(AT_ONCE)

        async def open_one() -> None:
            async with room:
                lane = await open_lanes.enter_async_context(sealane.connect(order.url))
                await lane.topics()

        async with asyncio.TaskGroup() as opening:
            for _ in range(order.connections):
                opening.create_task(open_one())
        begun_ns = wait_for_the_start()
        # On a thread: each connection has heartbeats to answer meanwhile.
        await asyncio.to_thread(sys.stdin.readline)
        return done(begun_ns)
