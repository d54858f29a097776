"""Client processes of RabbitMQ Streams, by rstream: confirmed batches, a consumer that stores its offset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import rstream
from rstream.exceptions import OffsetNotFound

from bench.pacing import at_a_pace
from bench.peers.client import PUBLISHES_PER_SECOND, Job, Result, age_ms, done, main, now_ns, wait_for_the_start

STREAM = CONSUMER = "bench"
USER = PASSWORD = "guest"  # Of a server that only listens on the loopback.
SUB_ENTRY_MESSAGES = 250
SUB_ENTRY_MESSAGE_BYTES_MAX = 256
"""Sub-entries are the faster way for small messages alone: rstream copies all that an entry has so far for each message
that is put into it. Measured: at 100 B they take two thirds of the processor time of plain batches, at 1 KiB more."""
UNCONFIRMED_IN_SUB_ENTRIES_MAX = 400_000
"""Messages on their way. Many, since rstream sends the sub-entries that it has gathered only each half second."""
UNCONFIRMED_IN_BATCHES_MAX = 50_000
FRAME_BYTES_MAX = 1 << 20
MESSAGE_OVERHEAD_BYTES = 12
STORE_EVERY = 10_000
"""Messages after which a consumer stores its offset, as the documentation advises against doing it for each."""
CREDITS = 50
"""Chunks that the server may send ahead."""
LOOK_SECONDS = 0.001


def producer(job: Job) -> rstream.Producer:
    return rstream.Producer("127.0.0.1", job.port, username=USER, password=PASSWORD)


def consumer(job: Job) -> rstream.Consumer:
    return rstream.Consumer("127.0.0.1", job.port, username=USER, password=PASSWORD)


class Confirmations:
    """How many sends are not confirmed yet, and a wait until there are fewer."""

    def __init__(self) -> None:
        self.open = 0
        self.refused = 0
        self._fewer = asyncio.Event()

    def __call__(self, status: rstream.ConfirmationStatus) -> None:
        self.open -= 1
        self.refused += not status.is_confirmed
        self._fewer.set()

    async def at_most(self, count: int) -> None:
        while self.open > count:
            self._fewer.clear()
            await self._fewer.wait()
        assert self.refused == 0, f"{self.refused} sends were refused"


async def publish(job: Job) -> Result:
    return await _publish(job, send_plain)


async def publish_sub_entries(job: Job) -> Result:
    return await _publish(job, send_sub_entries if job.size <= SUB_ENTRY_MESSAGE_BYTES_MAX else send_plain)


async def _publish(job: Job, send: Callable[[rstream.Producer, list[bytes], Confirmations], Awaitable[None]]) -> Result:
    payloads = job.payloads()
    confirmations = Confirmations()
    async with producer(job) as stream:
        await stream.create_stream(STREAM, exists_ok=True)
        begun_ns = wait_for_the_start()
        for _ in range(job.count // job.batch):
            await send(stream, payloads, confirmations)
        await confirmations.at_most(0)
        return done(begun_ns)


async def send_sub_entries(stream: rstream.Producer, payloads: list[bytes], confirmations: Confirmations) -> None:
    for first in range(0, len(payloads), SUB_ENTRY_MESSAGES):
        await confirmations.at_most(UNCONFIRMED_IN_SUB_ENTRIES_MAX // SUB_ENTRY_MESSAGES - 1)
        confirmations.open += 1  # A sub-entry is confirmed as one, however many messages are in it.
        entry = payloads[first : first + SUB_ENTRY_MESSAGES]
        await stream.send_sub_entry(STREAM, entry, on_publish_confirm=confirmations)


async def send_plain(stream: rstream.Producer, payloads: list[bytes], confirmations: Confirmations) -> None:
    frame_bytes = sum(len(payload) + MESSAGE_OVERHEAD_BYTES for payload in payloads)
    assert frame_bytes < FRAME_BYTES_MAX, f"a batch of {frame_bytes:,} B does not fit into a frame"
    await confirmations.at_most(UNCONFIRMED_IN_BATCHES_MAX - len(payloads))
    confirmations.open += len(payloads)
    await stream.send_batch(STREAM, payloads, on_publish_confirm=confirmations)


async def consume(job: Job) -> Result:
    received = last = 0
    all_here = asyncio.Event()

    def receive(message: object, context: rstream.MessageContext) -> Awaitable[None] | None:
        nonlocal received, last
        received += 1
        if received == job.count:
            last = context.offset
            all_here.set()
        elif received % STORE_EVERY == 0:
            return context.consumer.store_offset(STREAM, CONSUMER, context.offset)
        return None

    async with consumer(job) as stream:
        await stream.create_stream(STREAM, exists_ok=True)
        await stream.subscribe(STREAM, receive, initial_credit=CREDITS, subscriber_name=CONSUMER)
        begun_ns = wait_for_the_start()
        await all_here.wait()
        await stream.store_offset(STREAM, CONSUMER, last)
        # Storing an offset has no answer; that it can be read is the confirmation.
        while await _stored_offset(stream) != last:  # noqa: ASYNC110 - nobody tells when it is
            await asyncio.sleep(LOOK_SECONDS)
        return done(begun_ns)


async def _stored_offset(stream: rstream.Consumer) -> int | None:
    try:
        return await stream.query_offset(STREAM, CONSUMER)
    except OffsetNotFound:
        return None


async def publish_at_a_pace(job: Job) -> Result:
    """Sent at once each: gathered sends would wait for rstream's half second."""
    confirmations = Confirmations()
    async with producer(job) as stream:
        await stream.create_stream(STREAM, exists_ok=True)
        begun_ns = wait_for_the_start()
        async for _ in at_a_pace(job.count, PUBLISHES_PER_SECOND):
            confirmations.open += 1
            await stream.send_batch(STREAM, [job.stamped(now_ns())], on_publish_confirm=confirmations)
        await confirmations.at_most(0)
        return done(begun_ns)


async def receive_at_a_pace(job: Job) -> Result:
    took_ms: list[float] = []
    all_here = asyncio.Event()

    def receive(message: bytes, context: rstream.MessageContext) -> Awaitable[None] | None:
        took_ms.append(age_ms(message))
        if len(took_ms) == job.count:
            all_here.set()
        elif len(took_ms) % STORE_EVERY == 0:
            return context.consumer.store_offset(STREAM, CONSUMER, context.offset)
        return None

    async with consumer(job) as stream:
        await stream.create_stream(STREAM, exists_ok=True)
        await stream.subscribe(STREAM, receive, initial_credit=CREDITS, subscriber_name=CONSUMER)
        begun_ns = wait_for_the_start()
        await all_here.wait()
        return done(begun_ns, took_ms=took_ms)


if __name__ == "__main__":
    main(publish, publish_sub_entries, consume, publish_at_a_pace, receive_at_a_pace)
