"""Client processes of NATS JetStream, by nats-py: asynchronous publishes, a pull consumer's fetches with acks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StorageType

from bench.pacing import at_a_pace
from bench.peers.client import PUBLISHES_PER_SECOND, Job, Result, age_ms, done, main, now_ns, wait_for_the_start

STREAM = SUBJECT = CONSUMER = "bench"
OUTSTANDING_MAX = 4_000
"""Publishes whose acknowledgements may be on their way."""
PENDING_BYTES = 16 << 20


@asynccontextmanager
async def connected(job: Job) -> AsyncIterator[JetStreamContext]:
    connection = await nats.connect(job.address, pending_size=PENDING_BYTES)
    try:
        context = connection.jetstream(publish_async_max_pending=OUTSTANDING_MAX)
        await context.add_stream(name=STREAM, subjects=[SUBJECT], storage=StorageType.FILE)
        yield context
    finally:
        await connection.close()


async def publish(job: Job) -> Result:
    payloads = job.payloads()
    async with connected(job) as stream:
        begun_ns = wait_for_the_start()
        for _ in range(job.count // job.batch):
            for payload in payloads:
                await stream.publish_async(SUBJECT, payload)
        await stream.publish_async_completed()
        return done(begun_ns)


async def consume(job: Job) -> Result:
    async with connected(job) as stream:
        config = ConsumerConfig(ack_policy=AckPolicy.ALL)
        subscription = await stream.pull_subscribe(SUBJECT, CONSUMER, stream=STREAM, config=config)
        begun_ns = wait_for_the_start()
        left = job.count
        while left:
            messages = await subscription.fetch(min(job.batch, left))
            left -= len(messages)
            # The last one's acknowledgement stands for all before it.
            await (messages[-1].ack() if left else messages[-1].ack_sync())
        return done(begun_ns)


async def publish_at_a_pace(job: Job) -> Result:
    async with connected(job) as stream:
        begun_ns = wait_for_the_start()
        async for _ in at_a_pace(job.count, PUBLISHES_PER_SECOND):
            await stream.publish_async(SUBJECT, job.stamped(now_ns()))
        await stream.publish_async_completed()
        return done(begun_ns)


async def receive_at_a_pace(job: Job) -> Result:
    """Pushed by the server as they come: a fetch would return them late, when it is full."""
    took_ms: list[float] = []
    all_here = asyncio.Event()

    async def receive(message: Msg) -> None:
        took_ms.append(age_ms(message.data))
        await message.ack()
        if len(took_ms) == job.count:
            all_here.set()

    async with connected(job) as stream:
        await stream.subscribe(SUBJECT, durable=CONSUMER, stream=STREAM, cb=receive, manual_ack=True)
        begun_ns = wait_for_the_start()
        await all_here.wait()
        return done(begun_ns, took_ms=took_ms)


if __name__ == "__main__":
    main(publish, consume, publish_at_a_pace, receive_at_a_pace)
