"""Single publishes become batches: what is published in the same moment is built, sealed and committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sealane.errors import Closed, DeadlineExceeded, InvalidMessage, QueueFull
from sealane.message import Batch, Row
from sealane.node.receipts import Receipt, Receipts

BATCH_MESSAGES = 4_096
BATCH_BYTES = 1 << 20
"""A batch of single messages is closed at this size."""

Waiting = list[tuple[Row, asyncio.Future[Receipt]]]


class Coalescer:
    """Gathers the messages for one topic that are published within one pass of the event loop.

    `publish` hands a batch over in that moment. The futures fail with `DeadlineExceeded` after `timeout_seconds`: one
    timer for all that went together.
    """

    def __init__(
        self,
        build: Callable[[list[Row]], Batch],
        publish: Callable[[Batch], asyncio.Future[Receipts]],
        timeout_seconds: float,
    ) -> None:
        self._build = build
        self._publish = publish
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: Waiting = []
        self._waiting_bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, row: Row) -> asyncio.Future[Receipt]:
        """The future resolves when the message is durable."""
        receipt: asyncio.Future[Receipt] = self._loop.create_future()
        self._waiting.append((row, receipt))
        self._waiting_bytes += len(row.payload)
        if len(self._waiting) >= BATCH_MESSAGES or self._waiting_bytes >= BATCH_BYTES:
            self._flush()
        elif self._scheduled is None:
            self._scheduled = self._loop.call_soon(self._flush)
        return receipt

    def _flush(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        timer = self._loop.call_later(self._timeout_seconds, self._expire, waiting)
        try:
            publishing = self._publish(self._build([row for row, _ in waiting]))
        except Exception as error:
            self._refused(waiting, error, timer)
            return

        def landed(publishing: asyncio.Future[Receipts]) -> None:
            error = Closed("the broker closed") if publishing.cancelled() else publishing.exception()
            if error is None:
                timer.cancel()
                _resolve(waiting, publishing.result())
            else:
                self._refused(waiting, error, timer)

        publishing.add_done_callback(landed)

    def _refused(self, waiting: Waiting, error: BaseException, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        if isinstance(error, InvalidMessage | QueueFull) and len(waiting) > 1:
            # One message must not be refused for another one's fault.
            self._spawn(self._one_by_one(waiting))
        else:
            _fail(waiting, error)

    async def _one_by_one(self, waiting: Waiting) -> None:
        for row, future in waiting:
            try:
                receipts = await self._publish(self._build([row]))
            except Exception as error:
                _fail([(row, future)], error)
            else:
                _resolve([(row, future)], receipts)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _expire(self, waiting: Waiting) -> None:
        problem = f"publish was not done within {self._timeout_seconds:g} s; it may still happen"
        _fail(waiting, DeadlineExceeded(problem))


def _resolve(waiting: Waiting, receipts: Receipts) -> None:
    for (_, future), receipt in zip(waiting, receipts, strict=True):
        if not future.done():
            future.set_result(receipt)


def _fail(waiting: Waiting, error: BaseException) -> None:
    for _, future in waiting:
        if not future.done():
            future.set_exception(error)
