"""A client of `/api/v1/ws`, as a user would write one."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection

from sealane.doors.http.door import HttpDoor

DEADLINE_SECONDS = 30.0
PACKED = "sealane.v1.msgpack"


class Refused(Exception):
    """The node answered with an error."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.problem = problem
        super().__init__(f"{problem['status']} {problem['type']}: {problem['detail']}")


class Socket:
    """Answers are found by their call; everything else waits in `news`."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._calls = count(1)
        self._news: deque[dict[str, Any]] = deque()
        self._packed = connection.subprotocol == PACKED

    async def say(self, type: str, **fields: Any) -> None:
        said = {"type": type, **fields}
        await self.connection.send(msgspec.msgpack.encode(said) if self._packed else json.dumps(said))

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            data = await self.connection.recv()
        assert isinstance(data, bytes) == self._packed
        heard: dict[str, Any] = msgspec.msgpack.decode(data) if isinstance(data, bytes) else json.loads(data)
        return heard

    async def call(self, type: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request. Raises `Refused`."""
        call = next(self._calls)
        await self.say(type, call=call, **fields)
        while True:
            heard = await self.hear()
            if heard.get("call") != call:
                self._news.append(heard)
            elif heard["type"] == "error":
                raise Refused(heard["problem"])
            else:
                return heard

    async def news(self, type: str) -> dict[str, Any]:
        """The next that the node says by itself, which must be of this type."""
        heard = self._news.popleft() if self._news else await self.hear()
        assert heard["type"] == type, heard
        return heard

    async def publish(self, topic: str, *payloads: Any, **of_each: Any) -> list[dict[str, Any]]:
        messages = [{"payload": payload, **of_each} for payload in payloads]
        receipts: list[dict[str, Any]] = (await self.call("publish", topic=topic, messages=messages))["receipts"]
        return receipts

    async def subscribe(self, topic: str, subscription: str = "s", **options: Any) -> int:
        """The number of a new consumer."""
        subscribed = await self.call("subscribe", topic=topic, subscription=subscription, **options)
        consumer: int = subscribed["consumer"]
        return consumer

    async def messages(self, number: int) -> list[dict[str, Any]]:
        """So many messages, whatever deliveries they come in."""
        found: list[dict[str, Any]] = []
        while len(found) < number:
            found += (await self.news("deliver"))["messages"]
        return found

    async def closed(self) -> tuple[int, str]:
        """Code and reason, once the node has closed."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            with suppress(websockets.ConnectionClosed):
                while True:
                    await self.connection.recv()
        last = self.connection.protocol.close_rcvd
        assert last is not None, "the connection ended without a word"
        return last.code, last.reason


@asynccontextmanager
async def open_socket(
    door: HttpDoor, *, scheme: str = "ws", welcome: bool = True, **options: Any
) -> AsyncIterator[Socket]:
    """`welcome`: wait until the node has let it in."""
    options = {"max_size": None, "open_timeout": DEADLINE_SECONDS, "proxy": None, **options}
    async with websockets.connect(f"{scheme}://{door.address}/api/v1/ws", **options) as connection:
        socket = Socket(connection)
        if welcome:
            await socket.news("welcome")
        yield socket
