"""A blocking consumer: messages cross from the event loop in strides and are claimed in the caller's thread."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from sealane.client.consumer import BatchConsumption, Consumption, MessageConsumption
from sealane.client.message import MessageBatch
from sealane.client.opened import Opened
from sealane.client.sync.answers import SyncAnswers
from sealane.client.sync.message import SyncMessage, SyncMessageBatch, UnopenedSyncMessage
from sealane.client.sync.portal import Portal

Item = TypeVar("Item", SyncMessage, SyncMessageBatch)

STRIDE_MESSAGES = 256
"""So many cross at once: crossing costs about as much as handling a hundred."""


class SyncLoop(Generic[Item]):
    """What `for` steps through. The loop may be left in ways that its iterator is not told of, by `break` or an
    exception: then this object is dropped, and what was fetched ahead goes back in that moment.
    """

    __slots__ = ("_consumption",)

    def __init__(self, consumption: SyncConsumption[Item]) -> None:
        self._consumption: SyncConsumption[Item] = consumption

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        consumption = self._consumption
        # Before any lock is asked for: in a forked child nobody is left to release it, and what has crossed is the
        # parent's to hand out.
        consumption.portal.check()
        return consumption.take()

    def close(self) -> None:
        self._consumption.close()

    def __del__(self) -> None:
        self._consumption.leave()


class SyncConsumption(Generic[Item]):
    """An iterator over a subscription. Leaving the loop ends it: what was fetched ahead goes back at once.

    Use it in `for`, or in `with` to decide when it ends. Several threads may step through it: each item goes to one.
    """

    def __init__(self, portal: Portal[Any], consumption: Consumption[Any]) -> None:
        self.portal = portal
        self._loop_side = consumption
        self._answers: SyncAnswers | None = None
        self._taking = threading.Lock()
        """One thread at a time asks for more."""

    def take(self) -> Item:
        """The next; waits until there is one."""
        raise NotImplementedError

    def leave(self) -> None:
        """Take no more; what was fetched ahead goes back. Returns at once, and may be called in any thread."""
        self.portal.soon(self._leave_and_go)

    def close(self) -> None:
        """Leave, and return when nothing of this consumer is left in the node but what it has handed out."""
        self.portal.call(self._close)

    # --- on the event loop --------------------------------------------------------------------------------------------

    async def _open(self) -> SyncAnswers:
        answers = await self._loop_side.open()
        if self._answers is None:
            self._answers = SyncAnswers(self.portal, answers, auto_ack=self._loop_side.auto_ack)
        self._answers.flush()
        return self._answers

    def _leave(self) -> None:
        if self._answers is not None:
            self._answers.flush()
        self._loop_side.leave()

    def _leave_and_go(self) -> None:
        self._leave()
        self.portal.spawn(self._loop_side.close())

    async def _close(self) -> None:
        self._leave()
        await self._loop_side.close()

    # --- in the caller's thread ---------------------------------------------------------------------------------------

    def __iter__(self) -> SyncLoop[Item]:
        return SyncLoop(self)

    def __enter__(self) -> Self:
        self.portal.call(self._open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.portal.problem is None:
            self.close()
        else:
            self.leave()


class _Stride:
    """Messages that have crossed to the caller's side."""

    __slots__ = ("opened", "offsets", "payloads")

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.offsets = opened.part.offsets
        self.payloads = opened.part.batch.payloads()


class SyncMessageConsumption(SyncConsumption[SyncMessage]):
    """One message at a time. With automatic acks each waits for its own to be durable: batches are faster there."""

    _loop_side: MessageConsumption

    def __init__(self, portal: Portal[Any], consumption: MessageConsumption) -> None:
        super().__init__(portal, consumption)
        self._stride: _Stride | None = None

    def take(self) -> SyncMessage:
        if self._loop_side.auto_ack:
            return self._take_settled()
        stride = self._stride
        while True:
            if stride is not None:
                try:
                    return self._message(stride, stride.opened.rows.popleft())
                except IndexError:
                    pass  # All are claimed, or were taken back, or are being looked through in this moment.
            stride = self._next_stride(stride)

    def _next_stride(self, spent: _Stride | None) -> _Stride:
        with self._taking:
            if self._stride is None or self._stride is spent:
                try:
                    self._stride = self._cross(self.portal.call(self._next_opened))
                except BaseException:
                    self.leave()
                    raise
            return self._stride

    def _cross(self, opened: Opened) -> _Stride:
        if self._stride is not None and self._stride.opened is opened:
            return self._stride
        return _Stride(opened)

    def _take_settled(self) -> SyncMessage:
        with self._taking:
            try:
                opened, row = self.portal.call(self._settle_next)
            except BaseException:
                self.leave()
                raise
            self._stride = self._cross(opened)
            return self._message(self._stride, row)

    def _message(self, stride: _Stride, row: int) -> SyncMessage:
        assert self._answers is not None
        opened = stride.opened
        offset = int(stride.offsets[row])
        if opened.problems is not None and row in opened.problems:
            reason = opened.problems[row]
            return UnopenedSyncMessage(self._answers, opened.delivery, opened.part, row, offset, reason)
        return SyncMessage(self._answers, opened.delivery, opened.part, row, offset, stride.payloads[row])

    async def _next_opened(self) -> Opened:
        await self._open()
        return await self._loop_side.next_opened(STRIDE_MESSAGES)

    async def _settle_next(self) -> tuple[Opened, int]:
        await self._open()
        while True:
            opened = await self._loop_side.next_opened(STRIDE_MESSAGES)
            row = opened.rows[0]
            if await self._loop_side.settle_first(opened, row):
                return opened, row


class SyncBatchConsumption(SyncConsumption[SyncMessageBatch]):
    """Up to `messages_max` at a time, as they were stored together."""

    _loop_side: BatchConsumption

    def __init__(self, portal: Portal[Any], consumption: BatchConsumption) -> None:
        super().__init__(portal, consumption)
        self._ready: deque[MessageBatch] = deque()
        """What an interrupted caller has not come to take."""

    def take(self) -> SyncMessageBatch:
        with self._taking:
            try:
                if not self._ready:
                    self.portal.call(self._next_batch)
                batch = self._ready.popleft()
            except BaseException:
                self.leave()
                raise
        assert self._answers is not None
        return SyncMessageBatch.of(batch, self._answers)

    async def _next_batch(self) -> None:
        await self._open()
        self._ready.append(await self._loop_side.next_batch())

    def _leave(self) -> None:
        while self._ready:
            hold, partition, lease, offsets = self._ready.popleft().lease()
            if not self._loop_side.auto_ack:
                hold.release(partition, lease, offsets)
        super()._leave()
