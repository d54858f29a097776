"""A broker that scenarios may stop and start again, whatever it runs on, and ways to wait for what it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import sealane
from sealane.engine.local import StorageSettings
from sealane.node import NodeSettings
from sealane.node.describe import SubscriptionDescription
from tests.native_node import native_node

T = TypeVar("T")

DEADLINE_SECONDS = 20.0
"""No condition takes this long; a scenario that waits longer has failed."""

AT_ONCE = sealane.Retry("fixed", 0.0)
"""Failed messages come again without a pause."""


class Broker:
    """`lane` is a user's connection to it. In memory when there is no path; then a restart begins with nothing."""

    def __init__(self, path: Path | None, *, over_the_wire: bool = False) -> None:
        self.path = path
        self.settings: NodeSettings | None = None
        self.storage: StorageSettings | None = None
        self._over_the_wire = over_the_wire
        self._opened: AbstractAsyncContextManager[sealane.Lane] | None = None
        self._lane: sealane.Lane | None = None

    @property
    def lane(self) -> sealane.Lane:
        assert self._lane is not None, "the broker is stopped"
        return self._lane

    async def start(self) -> sealane.Lane:
        if self._over_the_wire:
            self._opened = _connected(self.settings)
        else:
            self._opened = sealane.embedded(self.path, settings=self.settings, storage=self.storage)
        self._lane = await self._opened.__aenter__()
        return self._lane

    async def stop(self) -> None:
        """As a user who leaves the `async with` block."""
        opened, self._opened, self._lane = self._opened, None, None
        if opened is not None:
            await opened.__aexit__(None, None, None)

    async def restart(self, settings: NodeSettings | None = None) -> sealane.Lane:
        await self.stop()
        self.settings = settings or self.settings
        return await self.start()


@asynccontextmanager
async def _connected(settings: NodeSettings | None) -> AsyncIterator[sealane.Lane]:
    """A lane to a node of its own, in memory, through a real door and real sockets."""
    async with native_node(settings=settings) as node, sealane.connect(node.url) as lane:
        yield lane


async def take(messages: AsyncIterable[T], count: int) -> list[T]:
    """The next `count`, then leave the loop."""
    taken: list[T] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in messages:
            taken.append(message)
            if len(taken) == count:
                break
    return taken


async def take_payloads(messages: AsyncIterable[sealane.Message], count: int) -> list[bytes]:
    """The payloads of the next `count`, acknowledged."""
    taken = await take(messages, count)
    for message in taken:
        await message.ack()
    await taken[-1].ack(confirm=True)
    return [message.payload for message in taken]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return as soon as the condition holds."""
    stop = time.monotonic() + DEADLINE_SECONDS
    while not await condition():
        assert time.monotonic() < stop, "it did not come to pass in time"
        await asyncio.sleep(0.002)


async def described(lane: sealane.Lane, topic: str, subscription: str) -> SubscriptionDescription:
    found = (await lane.describe_topic(topic)).subscriptions
    return next(each for each in found if each.name == subscription)


async def all_settled(lane: sealane.Lane, topic: str, subscription: str) -> None:
    """Wait until nothing is left to do on the subscription."""

    async def done() -> bool:
        return (await described(lane, topic, subscription)).depth == 0

    await eventually(done)


async def working_takes(seconds: float) -> None:
    """What a handler does with a message; the broker's time goes on meanwhile."""
    done = asyncio.get_running_loop().time() + seconds

    async def is_done() -> bool:
        return asyncio.get_running_loop().time() >= done

    await eventually(is_done)
