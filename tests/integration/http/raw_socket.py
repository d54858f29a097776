"""A WebSocket by hand, for what no library would send, and for clients that do not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from websockets.frames import Frame, Opcode

from sealane.doors.http.door import HttpDoor

DEADLINE_SECONDS = 30.0
HEAD = (
    "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
)


class RawSocket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, opcode: Opcode, data: bytes, *, fin: bool = True) -> None:
        self.writer.write(Frame(opcode, data, fin).serialize(mask=True))

    async def receive(self) -> tuple[int, bytes]:
        """Opcode and data of the next frame."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                length = int.from_bytes(await self.reader.readexactly(2), "big")
            elif length == 127:
                length = int.from_bytes(await self.reader.readexactly(8), "big")
            return first & 0x0F, await self.reader.readexactly(length)

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the close frame; what comes before it is skipped."""
        while True:
            opcode, data = await self.receive()
            if opcode == Opcode.CLOSE:
                return int.from_bytes(data[:2], "big"), data[2:].decode()

    async def gone(self) -> None:
        """Wait until the node has cut it off."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            with suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass


async def opening(
    door: HttpDoor, more: str = "", *, path: str = "/api/v1/ws", host: str | None = None
) -> tuple[int, str]:
    """Status and body of the answer to a request that is refused."""
    reader, writer = await asyncio.open_connection(*_address(door))
    try:
        writer.write(HEAD.format(path=path, host=host or door.address, more=more).encode())
        async with asyncio.timeout(DEADLINE_SECONDS):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


@asynccontextmanager
async def raw_socket(door: HttpDoor, more: str = "", *, receive_bytes: int | None = None) -> AsyncIterator[RawSocket]:
    """One that was answered with 101. `receive_bytes`: what the machine takes in for it while nobody reads."""
    plain = socket.socket()
    if receive_bytes is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, _address(door))
    reader, writer = await asyncio.open_connection(sock=plain, limit=receive_bytes or 1 << 16)
    try:
        writer.write(HEAD.format(path="/api/v1/ws", host=door.address, more=more).encode())
        async with asyncio.timeout(DEADLINE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        yield RawSocket(reader, writer)
    finally:
        writer.transport.abort()


def _address(door: HttpDoor) -> tuple[str, int]:
    host, _, port = door.address.rpartition(":")
    return host, int(port)
