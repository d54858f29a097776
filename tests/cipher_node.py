"""A node behind its cipher door in the test's own process, and a client that says lines."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sealane.doors.cipher.door import CipherDoor
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.doors.tls import NodeTls
from sealane.engine import Engine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.security.introductions import Authenticate
from tests.cipher_messages import encrypted, written
from tests.native_node import native_node

ANSWER_SECONDS = 60.0
LINE_BYTES_MAX = 32 << 20


class LineClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *lines: str) -> None:
        self.writer.write("".join(f"{line}\n" for line in lines).encode())

    async def line(self) -> str:
        """The next; an empty one if the connection has ended."""
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await self.reader.readline()).decode().rstrip("\n")

    async def ask(self, line: str) -> str:
        self.send(line)
        return await self.line()

    async def rest(self) -> str:
        """Everything until the connection ends."""
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await self.reader.read()).decode()

    async def make_queue(self, queue: str) -> None:
        assert await self.ask(f"declare_queue {queue}") == "Queue declared"
        assert await self.ask(f"declare_exchange {queue}-exchange") == "Exchange declared"
        assert await self.ask(f"bind {queue} {queue}-exchange key") == "Queue bound"

    async def publish(self, queue: str, message: dict[str, str] | None = None) -> dict[str, str]:
        message = message or encrypted()
        reply = await self.ask(f"publish {queue}-exchange key {written(message)}")
        assert reply == f"ACK {message['message_id']}", reply
        return message


@asynccontextmanager
async def line_client(address: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[LineClient]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls, limit=LINE_BYTES_MAX)
    try:
        yield LineClient(reader, writer)
    finally:
        writer.transport.abort()


class CipherNode:
    def __init__(self, node: Node, door: CipherDoor, url: str) -> None:
        self.node = node
        self.door = door
        self.url = url
        """For `sealane.connect`."""

    @property
    def address(self) -> str:
        return self.door.address


@asynccontextmanager
async def cipher_node(
    *,
    engine: Engine | None = None,
    settings: NodeSettings | None = None,
    authenticate: Authenticate = everyone_is_admin,
    tls: NodeTls | None = None,
    **door: Any,
) -> AsyncIterator[CipherNode]:
    """`door` are settings of the door."""
    async with native_node(engine=engine, settings=settings, authenticate=authenticate) as native:
        crashes: list[tuple[str, BaseException]] = []
        native.node.supervisor.on_crash = lambda task, error: crashes.append((task, error))
        cipher = CipherDoor(Gate(native.node, authenticate), CipherDoorSettings(**{"port": 0, **door}), tls=tls)
        try:
            await cipher.start()
            yield CipherNode(native.node, cipher, native.url)
        finally:
            await cipher.close()
    assert crashes == [], crashes
    assert cipher.budget.in_flight_bytes == 0
