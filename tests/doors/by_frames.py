"""By frames: payloads and nothing else, of one topic and one subscription that the door's settings name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sealane.doors.frames.door import FramesDoor
from sealane.doors.frames.framing import HEAD, HEAD_BYTES, framed
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.node.gate import Gate
from tests.doors.node import ManyDoors


class FramesSpeaker:
    def __init__(self, address: str) -> None:
        self._address = address

    async def _open(self, role: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(framed([role]))
        return reader, writer

    async def publish(self, *payloads: bytes) -> str:
        """Returns when they are stored, or with what the node says instead."""
        reader, writer = await self._open(b"PRODUCER")
        writer.write(framed(payloads))
        writer.write_eof()
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
        return said[HEAD_BYTES:].decode()

    async def take(self, count: int) -> list[bytes]:
        """The next frames, whatever they say."""
        reader, writer = await self._open(b"CONSUMER")
        found = [await reader.readexactly(HEAD.unpack(await reader.readexactly(HEAD_BYTES))[0]) for _ in range(count)]
        writer.close()
        await writer.wait_closed()
        return found


@asynccontextmanager
async def by_frames(doors: ManyDoors) -> AsyncIterator[FramesSpeaker]:
    """Of the topic `t` and its subscription `s`."""
    settings = FramesDoorSettings(port=0, mode="queue", topic="t", subscription="s")
    door = FramesDoor(Gate(doors.node, doors.authenticate), settings)
    try:
        await door.start()
        yield FramesSpeaker(door.address)
    finally:
        await door.close()
