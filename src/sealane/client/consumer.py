"""A consumer: messages fetched ahead within its credit, handed out one by one or in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Generic, Self, TypeVar

from pyroaring import BitMap64

from sealane.client.answers import Answers
from sealane.client.broker import DistantHold, LaneConsumer
from sealane.client.fetched import Fetched
from sealane.client.message import Message, MessageBatch, UnopenedMessage
from sealane.client.opened import Opened
from sealane.client.unsealing import Unsealing
from sealane.client.window import Window
from sealane.delivery.offsets import span
from sealane.errors import Closed, LeaseLost, SealaneError
from sealane.message import Batch
from sealane.node import Delivery, Part

Item = TypeVar("Item", Message, MessageBatch)
Attach = Callable[[LaneConsumer], Awaitable[Answers]]


MESSAGES_OPENED_AT_ONCE = 256
"""Payloads become Python objects in strides of this many."""
PATIENCE_SHARE = 0.5
"""What was fetched ahead and not handed out by this share of its lease goes back, without counting an attempt. So a
message that is handed out has at least the rest of its lease left."""


class Loop(Generic[Item]):
    """What `async for` steps through. The loop may be left in ways that its iterator is not told of, by `break` or an
    exception: then this object is dropped, and what was fetched ahead goes back in that moment.
    """

    __slots__ = ("_items", "_leave")

    def __init__(self, leave: Callable[[], None], items: AsyncGenerator[Item, None]) -> None:
        self._leave = leave
        self._items: AsyncGenerator[Item, None] = items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return await self._items.__anext__()

    async def aclose(self) -> None:
        await self._items.aclose()

    def __del__(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return  # Collected on another thread or after the loop's end: the generator's own end does it.
        self._leave()


class Consumption(Generic[Item]):
    """An asynchronous iterator over a subscription. Leaving the loop ends it: what was fetched ahead goes back at once.

    Use it in `async for`, or in `async with` to decide when it ends.
    """

    def __init__(
        self,
        attach: Attach,
        consumer_id: str,
        window: Window,
        *,
        auto_ack: bool,
        lease_seconds: float,
        unsealing: Unsealing | None = None,
    ) -> None:
        self._attach = attach
        self._consumer_id = consumer_id
        self._window = window
        self.auto_ack = auto_ack
        self._unsealing = unsealing
        self._fetched = Fetched(lease_seconds * PATIENCE_SHARE, self._give_back, self._make_room)
        self._answers: Answers | None = None
        self._ended = False

    async def open(self) -> Answers:
        """Take part in the subscription; the first step of the iteration does it."""
        if self._ended:
            raise _consumer_ended()
        if self._answers is None:
            fetched = self._fetched
            consumer = LaneConsumer(
                self._consumer_id, fetched.deliver, fetched.revoke, fetched.fail, lost=fetched.forget
            )
            answers = await self._attach(consumer)
            if self._ended:
                await answers.hold.detach()  # The lane was closed meanwhile.
                raise Closed("the lane is closed")
            self._answers = answers
            answers.hold.add_credit(self._window.begin(asyncio.get_running_loop().time()))
        return self._answers

    def __aiter__(self) -> Loop[Item]:
        return Loop(self.leave, self._iterate())

    def _iterate(self) -> AsyncGenerator[Item, None]:
        raise NotImplementedError

    def _give_back(self, delivery: Delivery, offsets: BitMap64) -> None:
        if self._answers is not None:
            self._answers.hold.release(delivery.partition, delivery.lease, offsets)

    def _make_room(self, count: int, last: Batch | None = None) -> None:
        """So many were handed out, or are gone: ask for more if it is time to."""
        if self._window.take(count) and self._answers is not None:
            message_bytes = last.nbytes / len(last) if last is not None else 0
            more = self._window.ask(asyncio.get_running_loop().time(), message_bytes)
            if more:
                self._answers.hold.add_credit(more)

    async def _settle_first(self, answers: Answers, delivery: Delivery, offsets: BitMap64) -> bool:
        """At most once: the ack is durable before the messages are handed out. False if they are no longer ours."""
        try:
            await answers.hold.ack(delivery.partition, delivery.lease, offsets)
        except LeaseLost:
            return False
        return True

    async def _refuse(self, answers: Answers, delivery: Delivery, offsets: BitMap64, reason: str) -> None:
        """Automatic acks are for what can be read: the rest fails, and is with the dead letters in the end."""
        with suppress(LeaseLost):
            await answers.hold.nack(delivery.partition, delivery.lease, offsets, reason=reason)

    def leave(self) -> None:
        """Take no more; give back what was fetched ahead, without counting an attempt. Idempotent.

        Whoever waits for the next one, in another task or thread, hears that it will not come.
        """
        if self._ended:
            return
        self._ended = True
        if self._fetched.error is None:
            self._fetched.fail(_consumer_ended())
        if self._answers is not None:
            self._answers.flush()
            unhandled = [(delivery.partition, delivery.lease, offsets) for delivery, offsets in self._fetched.drain()]
            self._answers.hold.leave(unhandled)

    async def close(self, *, hurried: bool = False) -> None:
        """Leave, and return when nothing of this consumer is left in the node but what it has handed out.

        Who is hurried, by an error or a cancellation, does not wait for a node elsewhere.
        """
        self.leave()
        if self._answers is None:
            return
        hold = self._answers.hold
        if hurried and isinstance(hold, DistantHold):
            hold.detach_at_once()
        else:
            await hold.detach()

    async def shut(self) -> None:
        """The lane closes: the iteration ends in `Closed`."""
        self._fetched.fail(Closed("the lane is closed"))  # First: those who wait hear of the lane, not of the leaving.
        await self.close()

    def abandon(self, error: SealaneError) -> None:
        """The lane closes and nobody waits: the iteration ends in this error."""
        self._fetched.fail(error)
        self.leave()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(hurried=kind is not None)


def _consumer_ended() -> Closed:
    return Closed("this consumer has ended, as it does when its loop is left; consume again for a new one")


class MessageConsumption(Consumption[Message]):
    """One message at a time. With automatic acks each waits for its own to be durable: batches are faster there."""

    async def next_opened(self, count: int = MESSAGES_OPENED_AT_ONCE) -> Opened:
        """Messages for the caller to claim: the rest of those that were opened last, or else the next."""
        if self._answers is None or self._ended:
            await self.open()
        fetched = self._fetched
        if fetched.opened is not None:
            if fetched.opened.rows:
                return fetched.opened
            done = fetched.opened.part.batch
            self._make_room(len(done), done)
            fetched.close_opened()
        if not fetched.ready:
            await fetched.wait()
        opened = fetched.open(count)
        if self._unsealing is not None:
            self._unsealing.open(opened)
        return opened

    async def settle_first(self, opened: Opened, row: int) -> bool:
        """Acknowledge and claim a message that is not claimed yet; False if it is no longer ours."""
        offset = int(opened.part.offsets[row])
        answers, this = await self.open(), span(offset, offset + 1)
        if opened.problems is not None and row in opened.problems:
            await self._refuse(answers, opened.delivery, this, opened.problems[row])
            settled = False
        else:
            settled = await self._settle_first(answers, opened.delivery, this)
        opened.withdraw(this)
        return settled

    async def _iterate(self) -> AsyncGenerator[Message, None]:
        answers = await self.open()
        try:
            while True:
                opened = await self.next_opened()
                delivery, part, rows = opened.delivery, opened.part, opened.rows
                payloads, offsets, problems = part.batch.payloads(), part.offsets, opened.problems
                while rows:
                    if self.auto_ack:
                        row = rows[0]
                        if not await self.settle_first(opened, row):
                            continue
                    else:
                        row = rows.popleft()
                    if problems is not None and row in problems:
                        yield UnopenedMessage(answers, delivery, part, row, int(offsets[row]), problems[row])
                    else:
                        yield Message(answers, delivery, part, row, int(offsets[row]), payloads[row])
        except GeneratorExit:
            await self.close()
            raise
        except BaseException:
            await self.close(hurried=True)
            raise


class BatchConsumption(Consumption[MessageBatch]):
    """Up to `messages_max` at a time, as they were stored together."""

    def __init__(
        self,
        attach: Attach,
        consumer_id: str,
        window: Window,
        *,
        auto_ack: bool,
        lease_seconds: float,
        messages_max: int,
        unsealing: Unsealing | None = None,
    ) -> None:
        super().__init__(
            attach, consumer_id, window, auto_ack=auto_ack, lease_seconds=lease_seconds, unsealing=unsealing
        )
        self._messages_max = messages_max

    async def next_batch(self) -> MessageBatch:
        """The next messages that were stored together; they are the caller's."""
        answers = self._answers
        if answers is None or self._ended:
            answers = await self.open()
        fetched = self._fetched
        while True:
            await fetched.wait()
            delivery, part = fetched.take(self._messages_max)
            parts, count = [part], len(part.batch)
            while count < self._messages_max and fetched.same_lease_next(delivery):
                _, part = fetched.take(self._messages_max - count)
                parts.append(part)
                count += len(part.batch)
            self._make_room(count, part.batch)
            if self._unsealing is None:
                batch = MessageBatch(answers, delivery, tuple(parts))
            else:
                batch = await self._opened(answers, delivery, parts, self._unsealing)
                if not len(batch):
                    continue
            if not self.auto_ack or await self._settle_first(answers, delivery, batch.lease()[-1]):
                return batch

    async def _opened(
        self, answers: Answers, delivery: Delivery, parts: list[Part], unsealing: Unsealing
    ) -> MessageBatch:
        """The messages with their payloads opened; with automatic acks without those that cannot be."""
        opened, problems = unsealing.open_parts(parts)
        batch = MessageBatch(answers, delivery, tuple(opened), problems)
        if problems and self.auto_ack:
            await self._refuse(answers, delivery, batch.unopened().lease()[-1], next(iter(problems.values())))
            return batch.openable()
        return batch

    async def _iterate(self) -> AsyncGenerator[MessageBatch, None]:
        await self.open()
        try:
            while True:
                yield await self.next_batch()
        except GeneratorExit:
            await self.close()
            raise
        except BaseException:
            await self.close(hurried=True)
            raise
