"""A node in memory with a clock that tests move."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.surroundings import Surroundings

DEADLINE_SECONDS = 60.0


@dataclass
class Clock:
    now_us: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def pass_seconds(self, seconds: float) -> None:
        self.now_us += round(seconds * 1e6)


@dataclass
class Running:
    node: Node
    lane: Lane
    clock: Clock


@asynccontextmanager
async def running_node(settings: NodeSettings | None = None) -> AsyncIterator[Running]:
    clock = Clock()
    node = await Node.open(MemoryEngine(clock), Surroundings(clock, os.urandom), settings)
    async with in_process(node) as lane:
        yield Running(node, lane, clock)
    await node.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for announces itself to nobody
            await asyncio.sleep(0.002)
