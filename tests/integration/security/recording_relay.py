"""A relay between a client and a node that keeps a copy of every byte that passes, either way."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

CHUNK_BYTES = 1 << 16


class RecordingRelay:
    """`async with RecordingRelay("127.0.0.1:7070") as relay:` listens at `relay.address`, and passes all on."""

    def __init__(self, node: str) -> None:
        self._host, _, port = node.rpartition(":")
        self._port = int(port)
        self._server: asyncio.Server | None = None
        self._streams: list[bytearray] = []

    @property
    def address(self) -> str:
        assert self._server is not None, "the relay does not listen"
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def saw(self, marker: bytes) -> bool:
        """Whether these bytes went over a connection, in either direction, also across the bounds of packets."""
        return any(marker in stream for stream in self._streams)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        node_reader, node_writer = await asyncio.open_connection(self._host, self._port)
        await asyncio.gather(self._pass(reader, node_writer), self._pass(node_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = bytearray()
        self._streams.append(stream)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                stream += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
