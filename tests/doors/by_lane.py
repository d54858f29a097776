"""By the native protocol, or within the process: both are a lane."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import sealane
from sealane.client import Lane
from sealane.delivery.config import Mode
from sealane.wire.faults import fault_of
from tests.doors.node import ManyDoors
from tests.doors.speaking import Given, Refused, Taken


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except sealane.SealaneError as error:
        code, text, _ = fault_of(error)
        raise Refused(code, text) from error


class LaneSpeaker:
    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        with refusals():
            return [str((await self._lane.publish(topic, **_said(each))).id) for each in messages]

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        taken: list[Taken] = []
        with refusals():
            async for each in self._lane.consume(topic, subscription, mode=mode, prefetch=count):
                fields = (str(each.id), each.payload, each.key, dict(each.headers or {}), each.priority)
                taken.append(Taken(*fields, each.attempt, each.offset, each))
                if len(taken) == count:
                    break
        return taken

    async def ack(self, topic: str, subscription: str, taken: Sequence[Taken]) -> None:
        with refusals():
            for each in taken:
                await each.hold.ack(confirm=True)

    async def nack(
        self, topic: str, subscription: str, taken: Sequence[Taken], *, delay: float | None, reason: str | None
    ) -> None:
        with refusals():
            for each in taken:
                await each.hold.nack(delay=delay, reason=reason, confirm=True)

    async def extend(self, topic: str, subscription: str, taken: Sequence[Taken], seconds: float) -> None:
        with refusals():
            for each in taken:
                await each.hold.extend(seconds)

    async def transact(
        self, name: str, publishes: dict[str, list[Given]], acks: Sequence[tuple[str, str, Sequence[Taken]]]
    ) -> None:
        with refusals():
            async with self._lane.transaction(name) as transaction:
                for topic, messages in publishes.items():
                    for each in messages:
                        await transaction.publish(topic, **_said(each))
                for held in [each.hold for _, _, taken in acks for each in taken]:
                    await transaction.ack(held)


def _said(message: Given) -> dict[str, Any]:
    return {**vars(message), "headers": message.headers or None}


@asynccontextmanager
async def by_native(doors: ManyDoors) -> AsyncIterator[LaneSpeaker]:
    with refusals():
        async with sealane.connect(doors.native_url) as lane:
            yield LaneSpeaker(lane)


@asynccontextmanager
async def in_process(doors: ManyDoors) -> AsyncIterator[LaneSpeaker]:
    with refusals():
        async with doors.lane_of_guest() as lane:
            yield LaneSpeaker(lane)
