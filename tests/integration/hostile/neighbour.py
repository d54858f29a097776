"""Somebody who goes about their business meanwhile, and is not to notice anything."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import sealane

QUIET_SECONDS = 60.0
"""For what was published to come: a message takes milliseconds, and a busy machine some more."""


class Neighbour:
    """Publishes one message after the other and consumes them all, from entering the block to leaving it.

    Leaving raises what has gone wrong, and looks whether every message has come, once.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.published = 0
        self.latencies: list[float] = []
        """Of each publish, in seconds."""
        self._received: list[bytes] = []
        self._going = True
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._lane = await self._closing.enter_async_context(sealane.connect(self._url))
        await self._lane.create_topic("neighbour")
        self._work = [asyncio.create_task(self._consume()), asyncio.create_task(self._publish())]
        await self.passed(10)
        return self

    async def passed(self, messages: int) -> None:
        """Return when so many more have come through, from now on."""
        wanted = len(self._received) + messages
        async with asyncio.timeout(QUIET_SECONDS):
            while len(self._received) < wanted:
                self._look_at_work()
                await asyncio.sleep(0.002)

    def _look_at_work(self) -> None:
        for task in self._work:
            if task.done():
                task.result()

    async def _publish(self) -> None:
        while self._going:
            began = time.perf_counter()
            await self._lane.publish("neighbour", b"%d" % self.published)
            self.latencies.append(time.perf_counter() - began)
            self.published += 1

    async def _consume(self) -> None:
        async for message in self._lane.consume("neighbour", subscription="s"):
            self._received.append(message.payload)
            await message.ack()

    def quantiles_ms(self, which: slice) -> str:
        """Of these publishes, for people."""
        chosen = self.latencies[which]
        taken = statistics.quantiles(chosen, n=100) if len(chosen) > 1 else [0.0] * 99
        return f"p50 {taken[49] * 1_000:.1f} ms and p99 {taken[98] * 1_000:.1f} ms of {len(chosen):,}"

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _, publishing = self._work
        self._going = False
        try:
            if kind is None:
                async with asyncio.timeout(QUIET_SECONDS):
                    await publishing
                await self.passed(self.published - len(self._received))
                assert self._received == [b"%d" % number for number in range(self.published)]
        finally:
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)
            await self._closing.aclose()
