"""A short measured run against a node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sealane.errors import SealaneError

if TYPE_CHECKING:
    from sealane.client import Lane

SUBSCRIPTION = "bench"
BATCHES_IN_FLIGHT = 4
SINGLES_SHARE = 10
"""One in so many messages goes singly: that takes as long as the rest in batches."""
STALL_SECONDS = 60.0
"""Nothing came for so long: something is wrong, and waiting longer will not tell what."""
CLEANING_SECONDS = 10.0

Progress = Callable[[int, int | None], None]


class Measuring:
    """Publishes to a topic of its own and reads it back; the topic is deleted in the end, whatever happened."""

    def __init__(self, lane: Lane, topic: str, payload: bytes, progress: Progress) -> None:
        self._lane = lane
        self._topic = topic
        self._payload = payload
        self._progress = progress
        self._done = 0
        self._total = 0

    async def run(self, *, messages: int, batch: int, per_second: float, lasting: float) -> dict[str, Any]:
        singles = max(1, messages // SINGLES_SHARE)
        paced = max(1, round(per_second * lasting))
        self._total = messages + singles + paced
        try:
            await self._lane.create_topic(self._topic)
            return {
                "payload_bytes": len(self._payload),
                "batches": {"batch": batch, **await self._batches(messages, batch)},
                "singles": await self._singles(singles),
                "latency": await self._latency(paced, per_second),
            }
        finally:
            await self._clean()

    async def _clean(self) -> None:
        try:
            async with asyncio.timeout(CLEANING_SECONDS):
                await self._lane.delete_topic(self._topic)
        except (SealaneError, TimeoutError):
            pass  # Why it failed was said before; a node that is gone takes no orders.

    async def _batches(self, messages: int, batch: int) -> dict[str, Any]:
        async def publish() -> float:
            flights: set[asyncio.Task[Any]] = set()
            for start in range(0, messages, batch):
                if len(flights) >= BATCHES_IN_FLIGHT:
                    done, flights = await asyncio.wait(flights, return_when=asyncio.FIRST_COMPLETED)
                    for each in done:
                        each.result()
                payloads = [self._payload] * min(batch, messages - start)
                flights.add(asyncio.create_task(self._publish_many(payloads)))
            await asyncio.gather(*flights)
            return time.perf_counter()

        async def consume() -> float:
            left = messages
            async for some in self._lane.consume_batches(self._topic, SUBSCRIPTION, messages_max=batch):
                left -= len(some)
                await some.ack(confirm=left <= 0)
                self._advance(len(some))
                if left <= 0:
                    break
            return time.perf_counter()

        return await self._timed(messages, publish(), consume())

    async def _publish_many(self, payloads: Sequence[bytes]) -> None:
        await self._lane.publish_many(self._topic, payloads)

    async def _singles(self, messages: int) -> dict[str, Any]:
        async def publish() -> float:
            async with self._lane.producer(self._topic) as producer:
                for _ in range(messages):
                    await producer.send(self._payload)
            return time.perf_counter()

        async def consume() -> float:
            left = messages
            async for message in self._lane.consume(self._topic, SUBSCRIPTION):
                left -= 1
                await message.ack(confirm=left <= 0)
                self._advance(1)
                if left <= 0:
                    break
            return time.perf_counter()

        return await self._timed(messages, publish(), consume())

    async def _timed(self, messages: int, publishing: Any, consuming: Any) -> dict[str, Any]:
        begin = time.perf_counter()
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            published, consumed = group.create_task(publishing), group.create_task(consuming)
            group.create_task(self._watch(limit, consumed))
        acked_seconds = consumed.result() - begin
        return {
            "messages": messages,
            "published_per_second": messages / (published.result() - begin),
            "acked_per_second": messages / acked_seconds,
            "bytes_per_second": messages * len(self._payload) / acked_seconds,
        }

    async def _watch(self, limit: asyncio.Timeout, consumed: asyncio.Task[float]) -> None:
        """Let the run end when nothing moves any more."""
        seen = -1
        while seen != self._done:
            seen = self._done
            if (await asyncio.wait([consumed], timeout=STALL_SECONDS))[0]:
                return
        limit.reschedule(0)

    async def _latency(self, messages: int, per_second: float) -> dict[str, Any]:
        """Single publishes at an even pace: until each was durable, and until it was received."""
        publish_ms: list[float] = []
        sent: dict[int, float] = {}
        received: dict[int, float] = {}

        async def consume() -> None:
            async for message in self._lane.consume(self._topic, SUBSCRIPTION):
                received[message.offset] = time.perf_counter()
                await message.ack()
                if len(received) == messages:
                    break

        async def publish() -> None:
            begin = time.perf_counter()
            receipt = await self._lane.publish(self._topic, self._payload)
            publish_ms.append((time.perf_counter() - begin) * 1000)
            sent[receipt.offset] = begin
            self._advance(1)

        async with asyncio.timeout(STALL_SECONDS + messages / per_second), asyncio.TaskGroup() as group:
            group.create_task(consume())
            start = time.perf_counter()
            for number in range(messages):
                # By the clock, not by the last one's end: a slow publish must not make the next ones late unseen.
                await asyncio.sleep(max(0, start + number / per_second - time.perf_counter()))
                group.create_task(publish())
        receive_ms = [(received[offset] - begin) * 1000 for offset, begin in sent.items()]
        return {
            "messages": messages,
            "per_second": per_second,
            "publish_ms": _quantiles(publish_ms),
            "receive_ms": _quantiles(receive_ms),
        }

    def _advance(self, messages: int) -> None:
        self._done += messages
        self._progress(self._done, self._total)


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
    found = {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in at.items()}
    return {**{name: round(value, 3) for name, value in found.items()}, "max": round(ordered[-1], 3)}
