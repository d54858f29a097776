"""A client process of a measurement: `python -m bench.wire_client WORK URL COUNT BATCH`.

It says `ready` when it is connected, begins when it is told to by a line on its standard input, and ends with a line of
JSON: when it began and ended (`CLOCK_MONOTONIC`, the same for every process of the machine), and what it has seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

import sealane

MESSAGE_BYTES = 100
TOPIC = SUBSCRIPTION = "bench"
PUBLISHES_PER_SECOND = 1_000

Result = dict[str, Any]


def wait_for_the_start() -> int:
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic_ns()


def done(begun_ns: int, **seen: Any) -> Result:
    return {"begun_ns": begun_ns, "ended_ns": time.monotonic_ns(), **seen}


# --- batches ----------------------------------------------------------------------------------------------------------


async def publish_many(lane: sealane.Lane, count: int, batch: int) -> Result:
    """So many batches, a few of them on their way at a time."""
    payloads = [os.urandom(MESSAGE_BYTES) for _ in range(batch)]
    room = asyncio.Semaphore(4 if batch >= 1_000 else 16)
    begun_ns = wait_for_the_start()

    async def publish() -> None:
        try:
            await lane.publish_many(TOPIC, payloads)
        finally:
            room.release()

    async with asyncio.TaskGroup() as publishing:
        for _ in range(count // batch):
            await room.acquire()
            publishing.create_task(publish())
    return done(begun_ns)


async def consume_batches(lane: sealane.Lane, count: int, batch: int) -> Result:
    received = 0
    async with lane.consume_batches(TOPIC, SUBSCRIPTION, messages_max=max(batch, 1_000)) as batches:
        begun_ns = wait_for_the_start()
        async for messages in batches:
            received += len(messages)
            await messages.ack(confirm=received == count)
            if received == count:
                break
    return done(begun_ns)


# --- one at a time ----------------------------------------------------------------------------------------------------


async def send(lane: sealane.Lane, count: int, batch: int) -> Result:
    payload = os.urandom(MESSAGE_BYTES)
    begun_ns = wait_for_the_start()
    async with lane.producer(TOPIC) as producer:
        for _ in range(count):
            await producer.send(payload)
    return done(begun_ns)


async def consume(lane: sealane.Lane, count: int, batch: int) -> Result:
    received = 0
    async with lane.consume(TOPIC, SUBSCRIPTION) as messages:
        begun_ns = wait_for_the_start()
        async for message in messages:
            received += 1
            await message.ack(confirm=received == count)
            if received == count:
                break
    return done(begun_ns)


def send_blocking(lane: sealane.SyncLane, count: int) -> Result:
    payload = os.urandom(MESSAGE_BYTES)
    begun_ns = wait_for_the_start()
    with lane.producer(TOPIC) as producer:
        for _ in range(count):
            producer.send(payload)
    return done(begun_ns)


def consume_blocking(lane: sealane.SyncLane, count: int) -> Result:
    received = 0
    with lane.consume(TOPIC, SUBSCRIPTION) as messages:
        begun_ns = wait_for_the_start()
        for message in messages:
            received += 1
            message.ack(confirm=received == count)
            if received == count:
                break
    return done(begun_ns)


# --- latency ----------------------------------------------------------------------------------------------------------


async def publish_at_a_pace(lane: sealane.Lane, count: int, batch: int) -> Result:
    """Single publishes, so many a second, whether or not those before them are done. Each carries its moment."""
    padding = os.urandom(MESSAGE_BYTES - 8)
    took_ms: list[float] = []
    await lane.publish(TOPIC, bytes(8))  # The first one of all opens connections and files.
    begun_ns = wait_for_the_start()

    async def publish() -> None:
        moment_ns = time.monotonic_ns()
        await lane.publish(TOPIC, struct.pack("<q", moment_ns) + padding)
        took_ms.append((time.monotonic_ns() - moment_ns) / 1e6)

    begun = time.monotonic()
    async with asyncio.TaskGroup() as publishing:
        for number in range(count):
            due = begun + number / PUBLISHES_PER_SECOND
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            publishing.create_task(publish())
    return done(begun_ns, took_ms=took_ms)


async def receive_at_a_pace(lane: sealane.Lane, count: int, batch: int) -> Result:
    took_ms: list[float] = []
    async with lane.consume(TOPIC, SUBSCRIPTION) as messages:
        begun_ns = wait_for_the_start()
        async for message in messages:
            now_ns = time.monotonic_ns()
            moment_ns = struct.unpack_from("<q", message.payload)[0]
            await message.ack()
            if moment_ns:
                took_ms.append((now_ns - moment_ns) / 1e6)
            if len(took_ms) == count:
                await message.ack(confirm=True)
                break
    return done(begun_ns, took_ms=took_ms)


WORKS: dict[str, Callable[[sealane.Lane, int, int], Coroutine[Any, Any, Result]]] = {
    work.__name__: work for work in (publish_many, consume_batches, send, consume, publish_at_a_pace, receive_at_a_pace)
}
BLOCKING_WORKS = {work.__name__: work for work in (send_blocking, consume_blocking)}


async def connected(name: str, url: str, count: int, batch: int) -> Result:
    async with sealane.connect(url) as lane:
        return await WORKS[name](lane, count, batch)


def main() -> None:
    name, url, count, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if name in BLOCKING_WORKS:
        with sealane.connect_sync(url) as lane:
            result = BLOCKING_WORKS[name](lane, count)
    else:
        result = uvloop.run(connected(name, url, count, batch))
    # Not printed: where output is unbuffered, a write to a full pipe may be cut short.
    with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as output:
        output.write(json.dumps(result).encode())


if __name__ == "__main__":
    main()
