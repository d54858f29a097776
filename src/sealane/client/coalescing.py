"""Single publishes become batches: what is published in the same moment is built, sealed and committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sealane.errors import InvalidMessage, QueueFull
from sealane.message import Batch, Row
from sealane.node.receipts import Receipt, Receipts

BATCH_MESSAGES = 4_096
BATCH_BYTES = 1 << 20
"""A batch of single messages is closed at this size."""


class Coalescer:
    """Gathers the messages for one topic that are published within one pass of the event loop."""

    def __init__(self, build: Callable[[list[Row]], Batch], publish: Callable[[Batch], Awaitable[Receipts]]) -> None:
        self._build = build
        self._publish = publish
        self._waiting: list[tuple[Row, asyncio.Future[Receipt]]] = []
        self._waiting_bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, row: Row) -> asyncio.Future[Receipt]:
        """The future resolves when the message is durable."""
        loop = asyncio.get_running_loop()
        receipt: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.append((row, receipt))
        self._waiting_bytes += len(row.payload)
        if len(self._waiting) >= BATCH_MESSAGES or self._waiting_bytes >= BATCH_BYTES:
            self._flush()
        elif self._scheduled is None:
            self._scheduled = loop.call_soon(self._flush)
        return receipt

    def _flush(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            task = asyncio.get_running_loop().create_task(self._send(waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, waiting: list[tuple[Row, asyncio.Future[Receipt]]]) -> None:
        try:
            receipts = await self._publish(self._build([row for row, _ in waiting]))
        except (InvalidMessage, QueueFull) as error:
            if len(waiting) > 1:
                # One message must not be refused for another one's fault.
                for one in waiting:
                    await self._send([one])
                return
            _fail(waiting, error)
        except Exception as error:
            _fail(waiting, error)
        else:
            for (_, future), receipt in zip(waiting, receipts, strict=True):
                if not future.done():
                    future.set_result(receipt)


def _fail(waiting: list[tuple[Row, asyncio.Future[Receipt]]], error: Exception) -> None:
    for _, future in waiting:
        if not future.done():
            future.set_exception(error)
