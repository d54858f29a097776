"""A broker that does what a test says, however rude: late, repeated, cut off. A real one cannot be made to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from sealane.cipher.connection import Connection, connect
from sealane.cipher.errors import ConnectionLost
from sealane.cipher.trying import Patience
from sealane.wire.cipher.message import EncryptedMessage

HASTY = Patience(try_seconds=0.1, refused_seconds=0.01)
"""For tests in which a broker does not answer at all."""
BRISK = Patience(try_seconds=1.0, refused_seconds=0.01)
"""For those in which it does in the end, also on a machine that has much else to do."""
DEADLINE_SECONDS = 20.0


class Gone(Exception):
    """The client hung up while something was expected of it."""


class Peer:
    """The broker's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def hear(self) -> str:
        """The next line of the client."""
        line = await self._reader.readline()
        if not line:
            raise Gone
        return line.decode().removesuffix("\n")

    async def hear_published(self) -> list[str]:
        """The ids of the next `publish` or `publish_batch`."""
        name, _, _, text = (await self.hear()).split(" ", 3)
        found: Any = json.loads(text)
        assert (name == "publish_batch") == isinstance(found, list), name
        return [each["message_id"] for each in (found if isinstance(found, list) else [found])]

    async def say(self, *lines: str) -> None:
        self._writer.write("".join(f"{line}\n" for line in lines).encode())
        await self._writer.drain()

    async def say_in_parts(self, *parts: bytes) -> None:
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def push(self, *messages: EncryptedMessage) -> None:
        await self.say(*(f"Message: {each.message_id} {each.written().decode()}" for each in messages))

    async def begin(self, queue: str = "q") -> None:
        """Answer a receiver's first line."""
        assert await self.hear() == f"consume {queue}"
        await self.say(f"Consuming {queue}")

    async def confirm(self, count: int) -> list[str]:
        """Answer so many acks."""
        found = []
        for _ in range(count):
            found.append((await self.hear()).removeprefix("ack "))
            await self.say(f"ACK_CONFIRMED {found[-1]}")
        return found

    async def until_gone(self) -> None:
        """Say nothing more, and wait until the client hangs up."""
        while await self._reader.readline():
            pass

    def hang_up(self) -> None:
        """End when all that was said is sent."""
        self._writer.close()

    def cut(self) -> None:
        """End as a crash does, at once."""
        self._writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


class ScriptedBroker:
    """Each connection follows the next script, and is closed at its end; beyond the last, none is let in."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self._scripts = list(scripts)
        self._problems: list[BaseException] = []
        self._talking: set[asyncio.Task[None]] = set()
        self.port = 0
        self.left = len(scripts)

    async def dial(self) -> Connection:
        if not self.left:
            raise ConnectionLost("there is no script any more")
        self.left -= 1
        return await connect("127.0.0.1", self.port)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talking.add(task)
        try:
            await self._scripts.pop(0)(Peer(reader, writer))
        except (Gone, ConnectionError):
            pass
        except BaseException as error:
            self._problems.append(error)
        finally:
            writer.close()
            self._talking.discard(task)

    async def end(self) -> None:
        if self._talking:
            await asyncio.wait(self._talking, timeout=DEADLINE_SECONDS)
        for problem in self._problems:
            raise problem


@asynccontextmanager
async def scripted_broker(*scripts: Script) -> AsyncIterator[ScriptedBroker]:
    broker = ScriptedBroker(scripts)
    server = await asyncio.start_server(broker.talk, "127.0.0.1", 0, limit=1 << 24)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield broker
        await broker.end()
    finally:
        server.close()
        await server.wait_closed()
