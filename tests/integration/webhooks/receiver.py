"""A receiver of webhooks: a small HTTPS server on loopback that writes down what it gets and answers as it is told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.certificates import TestAuthority
from tests.unit.node.running_node import DEADLINE_SECONDS

NAME = "hooks.example"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Received:
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def payloads(self) -> list[str]:
        return [message["payload"] for message in self.json["messages"]]


Answering = Callable[[Received], bytes | Awaitable[bytes]]


def status(number: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {number} As Told", "content-length: 0", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Receiver:
    port: int = 0
    authority: TestAuthority | None = None
    """None: it speaks plain http."""
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    answer: Answering = lambda received: OK
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, host: str = NAME, path: str = "/orders") -> str:
        return f"{'http' if self.authority is None else 'https'}://{host}:{self.port}{path}"

    @property
    def payloads(self) -> list[str]:
        return [payload for each in self.received for payload in each.payloads]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Looked at whenever something has come."""
        async with asyncio.timeout(DEADLINE_SECONDS), self.came:
            await self.came.wait_for(condition)

    async def count(self, requests: int) -> list[Received]:
        await self.until(lambda: len(self.received) >= requests)
        return self.received

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (received := await _read(reader)) is not None:
                async with self.came:
                    self.received.append(received)
                    self.came.notify_all()
                answer = self.answer(received)
                writer.write(answer if isinstance(answer, bytes) else await answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # The node has had enough of it.
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    assert method == "POST"
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Received(target, headers, await reader.readexactly(int(headers["content-length"])))


@asynccontextmanager
async def receiver(
    directory: Path | None, *, names: tuple[str, ...] = (NAME, "127.0.0.1"), host: str = "127.0.0.1"
) -> AsyncIterator[Receiver]:
    """With a certificate for these names by an authority of its own, whose certificate is `directory`/ca.crt; without a
    directory by plain http.
    """
    made, context = Receiver(), None
    if directory is not None:
        made.authority = TestAuthority()
        (directory / "ca.crt").write_text(made.authority.pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*made.authority.server(*names).write(directory, "receiver"))
    server = await asyncio.start_server(made.serve, host, 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
