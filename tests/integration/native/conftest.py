"""A node with its native door, in this process, on a free port of the loopback."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sealane.doors.native.door import NativeDoor
from sealane.doors.native.settings import NativeDoorSettings
from sealane.engine import Engine
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.node.surroundings import of_this_machine, wall_clock_us


@dataclass
class Running:
    node: Node
    door: NativeDoor

    @property
    def address(self) -> str:
        return self.door.address


@asynccontextmanager
async def running_node(
    engine: Engine | None = None,
    node_settings: NodeSettings | None = None,
    clock: Callable[[], float] | None = None,
    **settings: Any,
) -> AsyncIterator[Running]:
    surroundings = of_this_machine()
    node = await Node.open(engine or MemoryEngine(wall_clock_us), surroundings, node_settings)
    crashes: list[tuple[str, BaseException]] = []
    node.supervisor.on_crash = lambda task, error: crashes.append((task, error))
    door = NativeDoor(
        Gate(node, everyone_is_admin),
        NativeDoorSettings(**{"port": 0, **settings}),
        node_id="node-1",
        software="sealane/test",
        clock=clock,
    )
    try:
        await door.start()
        yield Running(node, door)
    finally:
        await door.close()
        await node.close()
    assert crashes == [], crashes
    assert door.in_flight_bytes == 0


@pytest.fixture
async def no_stray_errors() -> AsyncIterator[None]:
    """Errors in tasks and callbacks that nobody awaits are errors of the test."""
    stray: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    gc.freeze()
    yield
    gc.collect()
    gc.unfreeze()
    await asyncio.sleep(0)
    assert stray == []


@pytest.fixture
async def running(no_stray_errors: None) -> AsyncIterator[Running]:
    async with running_node() as started:
        yield started


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return as soon as the condition holds."""
    stop = time.monotonic() + 60
    while True:
        holds = condition()
        if holds if isinstance(holds, bool) else await holds:
            return
        assert time.monotonic() < stop, "it did not come to pass in time"
        await asyncio.sleep(0.005)
