"""The cipher door: messages published one by one and in batches, and consumed with an ack for each."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from sealane.testing.node_process import NodeProcess

WARM_SECONDS = 0.5
LONGEST_SECONDS = 60.0
"""Nothing here waits for longer."""
SESSION_KEY_BYTES = 256
"""Of a session key under RSA with 2048 bits."""


class CipherRates(NamedTuple):
    """Messages a second."""

    single: float
    batch: float
    consumed: float
    """Delivered, acknowledged, and confirmed."""


def rates(directory: Path, *, seconds: float, size: int, clients: int, batch: int) -> CipherRates:
    """Published messages are durable, and so are acks. Each client waits for the reply to its last command."""
    settings = {"doors.cipher.enabled": "on", "doors.cipher.port": 0, "log.level": "info"}
    with NodeProcess(directory / "data", settings) as node:
        return asyncio.run(_rates(node.doors["cipher"], seconds, size, clients, batch))


async def _rates(address: str, seconds: float, size: int, clients: int, batch: int) -> CipherRates:
    async with asyncio.timeout(LONGEST_SECONDS + 3 * seconds):
        for queue in ("single", "batch"):
            await _make_queue(address, queue)
        single, _ = await _published(address, "single", seconds, size, clients, 1)
        batched, there = await _published(address, "batch", seconds, size, clients, batch)
        return CipherRates(single, batched, await _consumed(address, "batch", seconds, there))


class _Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: str) -> _Client:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=16 << 20))

    def send(self, said: bytes) -> None:
        self._writer.write(said)

    async def lines(self) -> list[bytes]:
        """Those that have come, at least one."""
        received = await self._reader.read(1 << 20)
        if not received.endswith(b"\n"):
            received += await self._reader.readuntil(b"\n")
        return received.splitlines()

    async def replies(self, count: int, start: bytes) -> None:
        found = 0
        while found < count:
            lines = await self.lines()
            assert all(line.startswith(start) for line in lines), lines[:1]
            found += len(lines)

    def close(self) -> None:
        self._writer.close()


async def _make_queue(address: str, queue: str) -> None:
    client = await _Client.connect(address)
    for said in (f"declare_queue {queue}", f"declare_exchange {queue}", f"bind {queue} {queue} key"):
        client.send(f"{said}\n".encode())
        await client.replies(1, b"")
    client.close()


def _command(queue: str, size: int, count: int) -> bytes:
    """With a new id for each message; the rest of them is the same, since making it is no work of the node."""
    rest = {
        "enc_session_key": base64.b64encode(os.urandom(SESSION_KEY_BYTES)).decode(),
        "nonce": base64.b64encode(os.urandom(16)).decode(),
        "tag": base64.b64encode(os.urandom(16)).decode(),
        "ciphertext": base64.b64encode(os.urandom(size)).decode(),
    }
    messages = [{"message_id": str(uuid.uuid4()), **rest} for _ in range(count)]
    if count == 1:
        return f"publish {queue} key {json.dumps(messages[0])}\n".encode()
    return f"publish_batch {queue} key {json.dumps(messages)}\n".encode()


async def _published(
    address: str, queue: str, seconds: float, size: int, clients: int, count: int
) -> tuple[float, int]:
    """Messages a second, and all of them."""
    begin = time.perf_counter() + WARM_SECONDS
    publishing = (_publish(address, queue, size, count, begin, begin + seconds) for _ in range(clients))
    counted = await asyncio.gather(*publishing)
    return sum(timed for timed, _ in counted) / seconds, sum(published for _, published in counted)


async def _publish(address: str, queue: str, size: int, count: int, begin: float, stop: float) -> tuple[int, int]:
    """Messages that were published since `begin`, and all of them."""
    client = await _Client.connect(address)
    timed = published = 0
    while (now := time.perf_counter()) < stop:
        client.send(_command(queue, size, count))
        await client.replies(count, b"ACK ")
        published += count
        timed += count if now >= begin else 0
    client.close()
    return timed, published


async def _consumed(address: str, queue: str, seconds: float, there: int) -> float:
    """By one client that acknowledges what it has read, and reads on; until nothing is left, or the time is over."""
    client = await _Client.connect(address)
    client.send(f"consume {queue}\n".encode())
    confirmed = 0
    begin = time.perf_counter()
    while confirmed < there and time.perf_counter() < begin + seconds:
        acks = []
        for line in await client.lines():
            if line.startswith(b"Message: "):
                acks.append(b"ack " + line.split(b" ", 2)[1] + b"\n")
            elif line.startswith(b"ACK_CONFIRMED "):
                confirmed += 1
        client.send(b"".join(acks))
    client.close()
    return confirmed / (time.perf_counter() - begin)
