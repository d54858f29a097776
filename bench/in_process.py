"""The broker in a process: durable publishes on the local engine, sealing on, grant and ack."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import sealane

MESSAGE_BYTES = 100


async def batches(directory: Path, *, count: int, batch: int, in_flight: int = 4) -> float:
    """Messages a second through `publish_many`, `consume_batches` and `ack`, all acks durable at the end."""
    payloads = [os.urandom(MESSAGE_BYTES) for _ in range(batch)]
    async with sealane.embedded(directory) as lane:
        await lane.create_topic("bench")
        room = asyncio.Semaphore(in_flight)

        async def publish() -> None:
            try:
                await lane.publish_many("bench", payloads)
            finally:
                room.release()

        async def produce() -> None:
            async with asyncio.TaskGroup() as publishing:
                for _ in range(count):
                    await room.acquire()
                    publishing.create_task(publish())

        async def consume() -> None:
            received = 0
            async for messages in lane.consume_batches("bench", subscription="bench", messages_max=batch):
                received += len(messages)
                await messages.ack(confirm=received == count * batch)
                if received == count * batch:
                    return

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as both:
            both.create_task(produce())
            both.create_task(consume())
        return count * batch / (time.perf_counter() - begun)


async def singles(directory: Path, *, count: int, in_flight: int) -> float:
    """Durable single publishes a second, each awaited, by so many callers at a time."""
    payload = os.urandom(MESSAGE_BYTES)
    async with sealane.embedded(directory) as lane:
        await lane.publish("bench", payload)
        left = count

        async def caller() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await lane.publish("bench", payload)

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as callers:
            for _ in range(in_flight):
                callers.create_task(caller())
        return count / (time.perf_counter() - begun)


async def one_by_one(directory: Path, *, count: int) -> float:
    """Messages a second by `producer.send`, `async for message` and buffered acks."""
    payload = os.urandom(MESSAGE_BYTES)
    async with sealane.embedded(directory) as lane:
        await lane.create_topic("bench")

        async def produce() -> None:
            async with lane.producer("bench") as producer:
                for _ in range(count):
                    await producer.send(payload)

        async def consume() -> None:
            received = 0
            async for message in lane.consume("bench", subscription="bench"):
                received += 1
                await message.ack(confirm=received == count)
                if received == count:
                    return

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as both:
            both.create_task(produce())
            both.create_task(consume())
        return count / (time.perf_counter() - begun)
