"""gRPC: single calls by many at once, a stream of messages, Arrow in and Arrow out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pyarrow as pa
import uvloop

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.swarmmq_pb2_grpc import SwarmMQStub
from sealane.testing.node_process import NodeProcess

TOPIC = SUBSCRIPTION = "bench"
PULL_MESSAGES = 10_000
WARM_SECONDS = 0.5


class Rates(NamedTuple):
    """Messages a second."""

    single: float
    stream: float
    arrow: float
    pulled: float


def rates(directory: Path, *, seconds: float, size: int, calls: int, batch: int) -> Rates:
    """Of a durable node in plain text. Publishes count once they are answered; what is pulled is settled too."""
    settings = {"doors.grpc.enabled": "on", "doors.grpc.port": 0}
    with NodeProcess(directory / "data", settings) as node:
        return uvloop.run(_rates(node.doors["grpc"], seconds, size, calls, batch))


async def _rates(address: str, seconds: float, size: int, calls: int, batch: int) -> Rates:
    message = pb.SendMessageRequest(message=pb.Message(destination=TOPIC, payload=bytes(size)))
    arrow = pb.PublishBatchRequest(destination=f"{TOPIC}-arrow", arrow=_arrow(batch, size))
    async with grpc.aio.insecure_channel(address) as channel:
        stub = SwarmMQStub(channel)
        single = await _calls(stub, message, calls, seconds)
        stream = await _answers(stub.SendMessages(_for_a_while(message, seconds)), seconds)
        batches = await _answers(stub.PublishBatches(_for_a_while(arrow, seconds)), seconds)
        pulled = await _pulled(stub, seconds)
    return Rates(single, stream, batch * batches, pulled)


def _arrow(messages: int, size: int) -> bytes:
    records = pa.record_batch({"payload": [os.urandom(size) for _ in range(messages)]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    return bytes(sink.getvalue())


async def _calls(stub: Any, message: pb.SendMessageRequest, calls: int, seconds: float) -> float:
    """Answered calls a second, by so many callers that each have one under way."""
    begin = time.perf_counter() + WARM_SECONDS

    async def go_on() -> int:
        answered = 0
        while (now := time.perf_counter()) < begin + seconds:
            await stub.SendMessage(message)
            answered += now >= begin
        return answered

    return sum(await asyncio.gather(*(go_on() for _ in range(calls)))) / seconds


def _for_a_while(request: Any, seconds: float) -> Iterator[Any]:
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        yield request


async def _answers(call: Any, seconds: float) -> float:
    """Answers a second of a stream, from its beginning to its last answer."""
    begin = time.perf_counter()
    answers = 0
    async for _ in call:
        answers += 1
    return answers / (time.perf_counter() - begin)


async def _pulled(stub: Any, seconds: float) -> float:
    """Messages a second that were taken and settled, of those that are there."""
    begin = time.perf_counter()
    messages = 0
    async for lease, count in _taken(stub):
        await stub.AckMessage(
            pb.AckMessageRequest(destination=f"{TOPIC}-arrow", subscription=SUBSCRIPTION, lease=lease)
        )
        messages += count
        if time.perf_counter() > begin + seconds:
            break
    return messages / (time.perf_counter() - begin)


async def _taken(stub: Any) -> AsyncIterator[tuple[str, int]]:
    """Leases, and how many messages each has, until there are no more."""
    wish = pb.PullMessagesRequest(destination=f"{TOPIC}-arrow", subscription=SUBSCRIPTION, max_messages=PULL_MESSAGES)
    more = True
    while more:
        more = False
        async for answer in stub.PullBatches(wish):
            more = True
            yield answer.lease, rows_of(answer.arrow)


def rows_of(arrow: bytes) -> int:
    with pa.ipc.open_stream(arrow) as stream:
        return sum(batch.num_rows for batch in stream)
