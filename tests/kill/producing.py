"""Producers of every kind, each writing down what it sends and what it was told."""

from __future__ import annotations

import asyncio
import random
import uuid
from itertools import count

import sealane
from tests.kill.recording import Recorder, stored

KEYS = 6


def id_of(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, name)


class Producers:
    """All of one process, on one lane. They stop between two calls, when told to."""

    def __init__(self, lane: sealane.Lane, recorder: Recorder, chance: random.Random, stop: asyncio.Event) -> None:
        self._lane = lane
        self._recorder = recorder
        self._chance = chance
        self._stop = stop

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.singles("work", "single", 0.008))
            tasks.create_task(self.singles("fragile", "fragile", 0.02))
            tasks.create_task(self.batches())
            tasks.create_task(self.stream())
            tasks.create_task(self.given_ids())
            for key in range(KEYS):
                tasks.create_task(self.keyed(f"key-{key}"))

    async def _pause(self, seconds: float) -> bool:
        """Keep a pace; False when it is time to stop."""
        try:
            await asyncio.wait_for(self._stop.wait(), self._chance.uniform(0, 2 * seconds))
        except TimeoutError:
            return True
        return False

    async def singles(self, topic: str, producer: str, pause_seconds: float) -> None:
        for number in count():
            name = f"{producer}/{number}"
            await self._publish(topic, name)
            if not await self._pause(pause_seconds):
                return

    async def keyed(self, key: str) -> None:
        for number in count():
            await self._publish("keys", f"{key}/{number}", key=key.encode())
            if not await self._pause(0.05):
                return

    async def _publish(self, topic: str, name: str, **options) -> None:
        self._recorder.publishing(topic, [name])
        try:
            receipt = await self._lane.publish(topic, name.encode(), **options)
        except sealane.SealaneError as error:
            self._recorder.not_published([name], error)
        else:
            self._recorder.published(topic, [stored(name, receipt)])

    async def batches(self) -> None:
        numbers = count()
        while True:
            names = [f"batch/{next(numbers)}" for _ in range(self._chance.choice([1, 2, 10, 40]))]
            self._recorder.publishing("work", names)
            try:
                receipts = await self._lane.publish_many("work", [name.encode() for name in names])
            except sealane.SealaneError as error:
                self._recorder.not_published(names, error)
            else:
                self._recorder.published("work", map(stored, names, receipts))
            if not await self._pause(0.1):
                return

    async def stream(self) -> None:
        """A pipelined producer; when it fails, which it says at the next flush, another one goes on."""
        numbers = count()
        while not self._stop.is_set():
            producer = self._lane.producer("work")
            names: list[str] = []
            try:
                async with producer:
                    while True:
                        names = [f"stream/{next(numbers)}" for _ in range(self._chance.choice([1, 5, 30]))]
                        self._recorder.publishing("work", names)
                        for name in names:
                            await producer.send(name.encode())
                        await producer.flush()
                        self._recorder.published("work", [(name, None, None, None) for name in names])
                        if not await self._pause(0.1):
                            return
            except sealane.SealaneError as error:
                self._recorder.not_published(names, error)

    async def given_ids(self) -> None:
        """Publish under given ids, and again under ids of before: stored once, with the same receipt each time."""
        for number in count():
            for again in {number, self._chance.randrange(number + 1)}:
                name = f"given/{again}"
                await self._publish("once", name, id=id_of(name))
            if not await self._pause(0.02):
                return
