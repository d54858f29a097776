"""A door that speaks TLS and sends back what it hears, and what clients do at it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import Inside
from sealane.doors.tls_porch import TlsPorch

DEADLINE_SECONDS = 30
WORD = b"this door speaks TLS"
MiB = 1 << 20


class Echo(asyncio.Protocol):
    """Sends back what it hears; `made` has every one of them."""

    def __init__(self, made: list[Inside]) -> None:
        made.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        tls = transport.get_extra_info("ssl_object")
        self.certificate = tls.getpeercert(binary_form=True)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


class BufferedEcho(asyncio.BufferedProtocol):
    """The same, into a buffer that is smaller than a TLS record."""

    def __init__(self, made: list[Inside]) -> None:
        made.append(self)
        self._buffer = memoryview(bytearray(10_000))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        half = nbytes // 2
        self.transport.writelines([self._buffer[:half], self._buffer[half:nbytes]])  # type: ignore[attr-defined]


class Door:
    def __init__(self, porch: TlsPorch, server: asyncio.Server, made: list[Inside]) -> None:
        self.porch = porch
        self.made = made
        self.address: tuple[str, int] = server.sockets[0].getsockname()

    async def connect(self, context: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address, ssl=context, limit=MiB)


@asynccontextmanager
async def opened(
    tls: NodeTls, inside: Callable[[list[Inside]], Inside] = Echo, *, waiting_max: int = 100
) -> AsyncIterator[Door]:
    porch = TlsPorch("echo", tls, waiting_max=waiting_max, word_to_plain_text=WORD)
    made: list[Inside] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: porch.connection(lambda: inside(made)), "127.0.0.1", 0)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield Door(porch, server, made)
    finally:
        server.close()
        porch.close()
        for each in made:
            each.transport.abort()  # type: ignore[union-attr]
        await until(lambda: not porch.waiting)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a door has no event for it
            await asyncio.sleep(0.005)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except (OSError, ssl.SSLError):
        """It was refused."""


async def echoed(door: Door, context: ssl.SSLContext, data: bytes) -> bytes:
    reader, writer = await door.connect(context)
    writer.write(data)
    answer = await reader.readexactly(len(data))
    await hang_up(writer)
    return answer


async def refusal(door: Door, context: ssl.SSLContext) -> str:
    """What a client hears that tries to say something and is not let in."""
    try:
        reader, writer = await door.connect(context)
        writer.write(b"hello")
        heard = await reader.read()
    except (ssl.SSLError, ConnectionError) as error:
        return str(error)
    await hang_up(writer)
    return f"heard {heard!r}"
