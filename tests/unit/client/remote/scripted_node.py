"""A node that says exactly what a test wants said: `sealane.wire` on a real socket, and no broker behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sealane.message import Limits
from sealane.wire import messages as wire
from sealane.wire.connection import Connection
from sealane.wire.frames import new_scratch

DEADLINE_SECONDS = 60.0
M = TypeVar("M")


class Visitor:
    """One client's connection, seen from the node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._now = asyncio.get_running_loop().time
        self._wire = Connection("node", new_scratch(), self._now())
        self._heard: list[tuple[Any, memoryview]] = []
        self.passed: list[tuple[Any, memoryview]] = []
        """What was heard while something else was waited for."""

    def say(self, message: Any, *body: bytes) -> None:
        self._writer.writelines(self._wire.say(message, body, now=self._now()))

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self._writer.write(data)

    async def hear(self, kind: type[M]) -> M:
        """The next message of this kind."""
        return (await self.hear_with_body(kind))[0]

    async def hear_with_body(self, kind: type[M]) -> tuple[M, memoryview]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                while self._heard:
                    message, body = self._heard.pop(0)
                    if isinstance(message, kind):
                        return message, body
                    self.passed.append((message, body))
                await self._read(f"the client left before it said {kind.__name__}")

    async def _read(self, otherwise: str) -> None:
        data = await self._reader.read(1 << 16)
        assert data, otherwise
        while data:
            buffer = self._wire.get_buffer()
            count = min(len(data), len(buffer))
            buffer[:count] = data[:count]
            data = data[count:]
            self._heard.extend(self._wire.received(count, self._now()))

    async def welcome(self, *, heartbeat_seconds: float = 15.0) -> wire.Hello:
        hello = await self.hear(wire.Hello)
        offer = wire.LimitsOffer.of(Limits())
        self.say(wire.Welcome(1, "scripted", "node", "admin", "default", [], offer, 9 << 20, heartbeat_seconds))
        return hello

    async def gone(self) -> None:
        """Until the client has closed its side."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while await self._reader.read(1 << 16):
                pass

    def close(self) -> None:
        self._writer.close()

    def pause_reading(self) -> None:
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def resume_reading(self) -> None:
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]


class ScriptedNode:
    def __init__(self) -> None:
        self.server: asyncio.Server | None = None
        self.port = 0
        self._visitors: asyncio.Queue[Visitor] = asyncio.Queue()
        self._all: list[Visitor] = []

    @property
    def url(self) -> str:
        return f"sealane://127.0.0.1:{self.port}"

    async def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = Visitor(reader, writer)
        self._all.append(visitor)
        self._visitors.put_nowait(visitor)

    async def visitor(self) -> Visitor:
        """The next client's connection."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._visitors.get()

    async def welcomed(self, *, heartbeat_seconds: float = 15.0) -> Visitor:
        visitor = await self.visitor()
        await visitor.welcome(heartbeat_seconds=heartbeat_seconds)
        return visitor

    async def stop(self) -> None:
        """Nobody comes in any more, and whoever is inside is cut off."""
        assert self.server is not None
        self.server.close()
        for visitor in self._all:
            visitor.close()
        await self.server.wait_closed()


@asynccontextmanager
async def scripted_node(hosts: Sequence[str] = ("127.0.0.1",), port: int = 0) -> AsyncIterator[ScriptedNode]:
    node = ScriptedNode()
    node.server = await asyncio.start_server(node.came, hosts, port)
    node.port = node.server.sockets[0].getsockname()[1]
    try:
        yield node
    finally:
        await node.stop()
