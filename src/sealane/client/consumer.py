"""A consumer: messages fetched ahead within its credit, handed out one by one or in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import numpy as np
from pyroaring import BitMap64

from sealane.client.answers import Answers
from sealane.client.message import Message, MessageBatch
from sealane.errors import Closed, SealaneError
from sealane.node import Consumer as NodeConsumer
from sealane.node import Delivery, Part, Revocation
from sealane.node.attachment import Attachment
from sealane.node.deliveries import offsets_of

Item = TypeVar("Item", Message, MessageBatch)
Attach = Callable[[NodeConsumer], Awaitable[Attachment]]


MESSAGES_OPENED_AT_ONCE = 256
"""Payloads become Python objects in strides of this many."""


class Fetched:
    """Deliveries that wait to be handed out, without what was revoked meanwhile."""

    def __init__(self) -> None:
        self._parts: deque[tuple[Delivery, Part]] = deque()
        self._handing_out: Delivery | None = None
        self.gone = BitMap64()
        """Of what is being handed out one by one: offsets that were revoked since."""
        self._arrived = asyncio.Event()
        self.error: SealaneError | None = None

    def deliver(self, delivery: Delivery) -> None:
        self._parts.extend((delivery, part) for part in delivery.parts)
        self._arrived.set()

    def revoke(self, revocation: Revocation) -> None:
        """Drop what is no longer ours."""
        kept: deque[tuple[Delivery, Part]] = deque()
        for delivery, part in self._parts:
            if delivery.lease == revocation.lease and delivery.partition == revocation.partition:
                part = _without(part, revocation.offsets)
            if len(part.batch):
                kept.append((delivery, part))
        self._parts = kept
        open_now = self._handing_out
        if open_now is not None and (open_now.partition, open_now.lease) == (revocation.partition, revocation.lease):
            self.gone |= revocation.offsets

    def fail(self, error: SealaneError) -> None:
        self.error = error
        self._arrived.set()

    async def wait(self) -> None:
        """Until something is there; raises if nothing can come any more."""
        while not self._parts:
            if self.error is not None:
                raise self.error
            self._arrived.clear()
            await self._arrived.wait()

    def take(self, count: int) -> tuple[Delivery, Part]:
        """The next messages, at most `count`, of one stored batch."""
        delivery, part = self._parts.popleft()
        if len(part.batch) > count:
            self._parts.appendleft((delivery, Part(part.offsets[count:], part.batch.slice(count, len(part.batch)))))
            part = Part(part.offsets[:count], part.batch.slice(0, count))
        return delivery, part

    def same_lease_next(self, delivery: Delivery) -> bool:
        return bool(self._parts) and self._parts[0][0] is delivery

    def hand_out(self, delivery: Delivery | None) -> None:
        """Watch for revocations of this delivery (None: of none)."""
        self._handing_out = delivery
        self.gone.clear()

    def drain(self) -> list[tuple[Delivery, Part]]:
        parts, self._parts = list(self._parts), deque()
        return parts


def _without(part: Part, gone: BitMap64) -> Part:
    kept = [row for row, offset in enumerate(part.offsets) if int(offset) not in gone]
    if len(kept) == len(part.batch):
        return part
    rows = np.array(kept, dtype=np.int64)
    return Part(np.asarray(part.offsets, dtype=np.uint64)[rows], part.batch.take(rows))


class Consumption(Generic[Item]):
    """An asynchronous iterator over a subscription. Leaving the loop ends it: what was fetched ahead goes back at once.

    Use it in `async for`, or in `async with` to decide when it ends.
    """

    def __init__(self, attach: Attach, consumer_id: str, prefetch: int, *, auto_ack: bool) -> None:
        self._attach = attach
        self._consumer_id = consumer_id
        self._prefetch = prefetch
        self._auto_ack = auto_ack
        self._fetched = Fetched()
        self._answers: Answers | None = None
        self._taken = 0

    async def open(self) -> Answers:
        """Take part in the subscription; the first step of the iteration does it."""
        if self._answers is None:
            fetched = self._fetched
            consumer = NodeConsumer(
                self._consumer_id, fetched.deliver, fetched.revoke, fetched.fail, auto_ack=self._auto_ack
            )
            attachment = await self._attach(consumer)
            self._answers = Answers(attachment, auto_ack=self._auto_ack)
            attachment.add_credit(self._prefetch)
        return self._answers

    def __aiter__(self) -> AsyncIterator[Item]:
        return self._iterate()

    def _iterate(self) -> AsyncIterator[Item]:
        raise NotImplementedError

    def _handed_out(self, count: int) -> None:
        """Make room for as many again, in strides: one message at a time would wake the node for each."""
        self._taken += count
        if self._taken * 2 >= self._prefetch and self._answers is not None:
            self._answers.attachment.add_credit(self._taken)
            self._taken = 0

    def _unopened(self) -> list[tuple[Delivery, Part]]:
        return self._fetched.drain()

    async def close(self) -> None:
        """Take no more; give back what was fetched ahead, without counting an attempt. Idempotent."""
        if self._answers is None:
            return
        self._answers.flush()
        unhandled = [(delivery.partition, delivery.lease, offsets_of(part)) for delivery, part in self._unopened()]
        await self._answers.attachment.detach(unhandled)

    async def shut(self) -> None:
        """The lane closes: answers that come later are refused, and the iteration ends in `Closed`."""
        await self.close()
        if self._answers is not None:
            self._answers.close()
        self._fetched.fail(Closed("the lane is closed"))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class MessageConsumption(Consumption[Message]):
    """One message at a time."""

    _opened: tuple[Delivery, Part] | None = None
    _next_row = 0

    async def _iterate(self) -> AsyncIterator[Message]:
        answers = await self.open()
        fetched = self._fetched
        try:
            while True:
                await fetched.wait()
                delivery, part = self._opened = fetched.take(MESSAGES_OPENED_AT_ONCE)
                self._next_row = 0
                fetched.hand_out(delivery)
                gone, offsets = fetched.gone, part.offsets
                for row, payload in enumerate(part.batch.payloads()):
                    offset = int(offsets[row])
                    if gone and offset in gone:
                        continue
                    self._next_row = row + 1
                    yield Message(answers, delivery, part, row, offset, payload)
                self._opened = None
                fetched.hand_out(None)
                self._handed_out(len(part.batch))
        finally:
            await self.close()

    def _unopened(self) -> list[tuple[Delivery, Part]]:
        waiting = super()._unopened()
        if self._opened is not None:
            delivery, part = self._opened
            self._opened = None
            rest = Part(part.offsets[self._next_row :], part.batch.slice(self._next_row, len(part.batch)))
            if len(rest.batch):
                waiting.insert(0, (delivery, rest))
        return waiting


class BatchConsumption(Consumption[MessageBatch]):
    """Up to `messages_max` at a time, as they were stored together."""

    def __init__(self, attach: Attach, consumer_id: str, messages_max: int, prefetch: int, *, auto_ack: bool) -> None:
        super().__init__(attach, consumer_id, prefetch, auto_ack=auto_ack)
        self._messages_max = messages_max

    async def _iterate(self) -> AsyncIterator[MessageBatch]:
        answers = await self.open()
        fetched = self._fetched
        try:
            while True:
                await fetched.wait()
                delivery, part = fetched.take(self._messages_max)
                parts, count = [part], len(part.batch)
                while count < self._messages_max and fetched.same_lease_next(delivery):
                    _, part = fetched.take(self._messages_max - count)
                    parts.append(part)
                    count += len(part.batch)
                self._handed_out(count)
                yield MessageBatch(answers, delivery, tuple(parts))
        finally:
            await self.close()
