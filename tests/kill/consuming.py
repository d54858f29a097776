"""Consumers of every kind, each writing down what it is handed and what of it was confirmed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import sealane
from tests.kill.recording import Recorder

RETRY = sealane.Retry("fixed", 0.05, attempts_max=3)
POISON_EVERY = 7
"""Every so many of the fragile messages fail however often they are tried."""


class Consumers:
    """All of one process, on one lane, until they are cancelled."""

    def __init__(self, lane: sealane.Lane, recorder: Recorder, chance: random.Random) -> None:
        self._lane = lane
        self._recorder = recorder
        self._chance = chance

    async def run(self, *, alone: bool) -> None:
        """`alone` for one process of all: it has the subscriptions that take one consumer only."""
        loops: list[tuple[str, Callable[[str], Awaitable[None]]]] = [
            ("keyed", self.keyed),
            ("careful", self.careful),
            ("movers", self.movers if alone else self.batch_movers),
            ("workers", self.workers if alone else self.batch_workers),
        ]
        if alone:
            loops += [("ordered", self.ordered), ("readers", self.readers)]
        async with asyncio.TaskGroup() as tasks:
            for subscription, loop in loops:
                tasks.create_task(self._again_and_again(subscription, loop))

    async def _again_and_again(self, subscription: str, loop: Callable[[str], Awaitable[None]]) -> None:
        while True:
            try:
                await loop(subscription)
            except sealane.SealaneError as error:
                self._recorder.ended(subscription, error)

    async def workers(self, subscription: str) -> None:
        async for message in self._lane.consume("work", subscription, prefetch=50):
            self._recorder.granted(message, subscription)
            await self._ack(message, subscription)

    async def batch_workers(self, subscription: str) -> None:
        async for batch in self._lane.consume_batches("work", subscription, messages_max=20):
            self._recorder.batch_granted(batch, subscription)
            await self._ack(batch, subscription)

    async def ordered(self, subscription: str) -> None:
        """Most acks are not waited for; what they are worth shows when a later one is confirmed."""
        async for message in self._lane.consume("work", subscription):
            self._recorder.granted(message, subscription)
            if self._chance.random() < 0.2:
                await self._ack(message, subscription)
            else:
                await message.ack()

    async def readers(self, subscription: str) -> None:
        async for message in self._lane.consume("once", subscription, mode="exclusive"):
            self._recorder.granted(message, subscription)
            await self._ack(message, subscription)

    async def keyed(self, subscription: str) -> None:
        async for message in self._lane.consume("keys", subscription, mode="key-shared", retry=RETRY):
            self._recorder.granted(message, subscription)
            await self._ack(message, subscription)

    async def careful(self, subscription: str) -> None:
        async for message in self._lane.consume("fragile", subscription, retry=RETRY):
            self._recorder.granted(message, subscription)
            number = int(message.payload.rsplit(b"/", 1)[1])
            if number % POISON_EVERY == 0 or self._chance.random() < 0.1:
                try:
                    await message.nack(reason="it is too hard", confirm=self._chance.random() < 0.5)
                except sealane.SealaneError:
                    pass  # Then it comes again, sooner or later.
            else:
                await self._ack(message, subscription)

    async def movers(self, subscription: str) -> None:
        async for message in self._lane.consume("work", subscription, prefetch=20):
            self._recorder.granted(message, subscription)
            await self._move(message, [message.payload], f"move {message.payload.decode()}", subscription)

    async def batch_movers(self, subscription: str) -> None:
        async for batch in self._lane.consume_batches("work", subscription, messages_max=20):
            self._recorder.batch_granted(batch, subscription)
            name = f"move {batch.partition}:{','.join(map(str, batch.offsets()))}"
            await self._move(batch, batch.payloads(), name, subscription)

    async def _move(
        self, what: sealane.Message | sealane.MessageBatch, payloads: list[bytes], name: str, subscription: str
    ) -> None:
        offsets = _offsets(what)
        self._recorder.acking(what.topic, subscription, what.partition, offsets)
        try:
            async with self._lane.transaction(name) as transaction:
                await transaction.publish_many("done", payloads)
                await transaction.ack(what)
        except sealane.SealaneError:
            return
        self._recorder.acked(what.topic, subscription, what.partition, offsets)

    async def _ack(self, what: sealane.Message | sealane.MessageBatch, subscription: str) -> None:
        offsets = _offsets(what)
        self._recorder.acking(what.topic, subscription, what.partition, offsets)
        try:
            await what.ack(confirm=True)
        except sealane.SealaneError:
            return  # It may be settled or not; if not, it comes again.
        self._recorder.acked(what.topic, subscription, what.partition, offsets)


def _offsets(what: sealane.Message | sealane.MessageBatch) -> list[int]:
    return [what.offset] if isinstance(what, sealane.Message) else what.offsets()
