"""Publishing by HTTP: single messages as JSON by many clients at once, and Arrow bodies by a few."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pyarrow as pa

from sealane.testing.node_process import NodeProcess

ARROW = "application/vnd.apache.arrow.stream"
PATH = "/api/v1/domains/default/topics/bench/messages"
WARM_SECONDS = 0.5


def rates(
    directory: Path, *, seconds: float, size: int, clients: int, batch: int, arrow_clients: int
) -> tuple[float, float]:
    """Messages a second, once durable: single ones, and in Arrow bodies of `batch` messages."""
    with NodeProcess(directory / "data") as node:
        address = node.doors["http"]
        single = json.dumps({"payload": "x" * size}).encode()
        one = asyncio.run(_requests(address, single, "application/json", clients, seconds))
        many = asyncio.run(_requests(address, _stream(batch, size), ARROW, arrow_clients, seconds))
    return one, batch * many


def _stream(messages: int, size: int) -> bytes:
    records = pa.record_batch({"payload": [os.urandom(size) for _ in range(messages)]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    return bytes(sink.getvalue())


async def _requests(address: str, body: bytes, kind: str, clients: int, seconds: float) -> float:
    """Answered requests a second, by so many connections that each have one under way."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {kind}\r\naccept: {kind}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode()
    begin = time.perf_counter() + WARM_SECONDS
    counts = await asyncio.gather(*(_client(address, head + body, begin, begin + seconds) for _ in range(clients)))
    return sum(counts) / seconds


async def _client(address: str, request: bytes, begin: float, stop: float) -> int:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answered = 0
    try:
        while (now := time.perf_counter()) < stop:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 201"), head
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            answered += now >= begin
    finally:
        writer.close()
        await writer.wait_closed()
    return answered
