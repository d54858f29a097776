"""A node behind its frames door on a thread of its own, for clients that block; in memory, or on a given engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from sealane.client import Lane
from sealane.client.embedded import in_process
from sealane.doors.frames.door import FramesDoor
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.engine import Engine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.security.introductions import Authenticate
from tests.native_node import native_node
from tests.secure_node import SecureNode, secure_node
from tests.sync.waiting import eventually

DEADLINE_SECONDS = 30.0
TOPIC = "frames"

T = TypeVar("T")


@dataclass
class FramesNode:
    node: Node
    door: FramesDoor
    crashes: list[tuple[str, BaseException]]
    secure: SecureNode | None = None
    loop: asyncio.AbstractEventLoop | None = None
    """Where it runs, if that is a thread of its own."""

    @property
    def address(self) -> str:
        return self.door.address

    # --- from another thread ------------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done on the node's loop."""
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(DEADLINE_SECONDS)

    def look(self, looked: Callable[[], T]) -> T:
        """What is seen on the node's loop, in the middle of nothing."""

        async def there() -> T:
            return looked()

        return self.do(there())

    def with_lane(self, work: Callable[[Lane], Coroutine[Any, Any, T]]) -> T:
        """Have the admin do something."""

        async def there() -> T:
            async with in_process(self.node) as lane:
                return await work(lane)

        return self.do(there())

    def create_topic(self, name: str = TOPIC, **config: Any) -> None:
        self.with_lane(lambda lane: lane.create_topic(name, **config))

    def eventually(self, condition: Callable[[], bool]) -> None:
        """Return as soon as it holds, seen from the node's loop."""
        eventually(lambda: self.look(condition), DEADLINE_SECONDS)

    def stored(self, topic: str = f"default/{TOPIC}") -> int:
        """How many messages the topic has, of all its partitions, durable."""
        found = self.node.topics.get(topic)
        return sum(owner.core.visible for owner in found.owners) if found is not None else 0

    def unsettled(self, subscription: str = TOPIC, topic: str = f"default/{TOPIC}") -> int:
        cores = [owner.core for owner in self.node.topics[topic].owners]
        return sum(core.subscription(subscription).depth(core.end) for core in cores)

    def consumers(self, topic: str = f"default/{TOPIC}") -> int:
        """How many take part by now."""
        found = self.node.topics.get(topic)
        return len(found.attachments) if found is not None else 0

    def wait_stored(self, count: int) -> None:
        self.eventually(lambda: self.stored() == count)

    def wait_consumers(self, count: int) -> None:
        self.eventually(lambda: self.consumers() == count)


@asynccontextmanager
async def frames_node(
    path: Path | None = None,
    *,
    engine: Engine | None = None,
    settings: NodeSettings | None = None,
    authenticate: Authenticate | None = everyone_is_admin,
    **door: Any,
) -> AsyncIterator[FramesNode]:
    """In plain text, on a free port of the loopback; `door` are settings of the door."""
    async with native_node(path, engine=engine, settings=settings, authenticate=authenticate) as native:
        gate = Gate(native.node, authenticate or native.node.identity.authentication.authenticate)
        async with _open(FramesDoor(gate, FramesDoorSettings(**{"port": 0, **door})), native.node) as opened:
            yield opened


@asynccontextmanager
async def secure_frames_node(
    directory: Path, settings: NodeSettings | None = None, **door: Any
) -> AsyncIterator[FramesNode]:
    """With authentication, and TLS if `door` says so."""
    async with secure_node(directory, settings=settings) as secure:
        gate = Gate(secure.node, secure.node.identity.authentication.authenticate)
        chosen = FramesDoorSettings(**{"port": 0, **door})
        async with _open(FramesDoor(gate, chosen, tls=secure.tls if chosen.tls else None), secure.node) as opened:
            opened.secure = secure
            yield opened


@asynccontextmanager
async def _open(door: FramesDoor, node: Node) -> AsyncIterator[FramesNode]:
    crashes: list[tuple[str, BaseException]] = []
    node.supervisor.on_crash = lambda task, error: crashes.append((task, error))
    try:
        await door.start()
        yield FramesNode(node, door, crashes)
    finally:
        await door.close()
    assert crashes == []
    assert door.budget.in_flight_bytes == 0


@contextmanager
def on_a_thread(opening: AbstractAsyncContextManager[FramesNode]) -> Iterator[FramesNode]:
    """Its loop is of the kind that a node's process has."""
    with uvloop_thread() as loop:
        stray: list[dict[str, Any]] = []
        loop.call_soon_threadsafe(loop.set_exception_handler, lambda _, context: stray.append(context))
        node = asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result(DEADLINE_SECONDS)
        node.loop = loop
        try:
            yield node
        finally:
            closing = opening.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(closing, loop).result(DEADLINE_SECONDS)
        assert stray == []


@contextmanager
def uvloop_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="node")
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        loop.close()
