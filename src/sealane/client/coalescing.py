"""Single publishes become batches: what is published in the same moment is built, sealed and committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from sealane.client.broker import Landed
from sealane.errors import DeadlineExceeded, InvalidMessage, QueueFull, SchemaMismatch
from sealane.message import Batch, Row
from sealane.node.receipts import Receipt, Receipts

BATCH_MESSAGES = 4_096
BATCH_BYTES = 1 << 20
"""A batch of single messages is closed at this size."""

Waiting = list[tuple[Row, asyncio.Future[Receipt]]]


class _Flight:
    """Messages that went together, and when their time is up."""

    __slots__ = ("deadline", "waiting")

    def __init__(self, waiting: Waiting, deadline: float) -> None:
        self.waiting = waiting
        self.deadline = deadline


class Coalescer:
    """Gathers the messages for one topic that are published within one pass of the event loop.

    A message goes out in the call that publishes it if no other of the topic is under way: it would wait for nobody.
    While one is, the rest of the pass gathers, so that any number of concurrent publishes are two batches.

    `hand_over` hands a batch over in that moment. The futures fail with `DeadlineExceeded` after `timeout_seconds`.
    """

    def __init__(
        self,
        build: Callable[[list[Row]], Batch],
        hand_over: Callable[[Batch, Landed], None],
        timeout_seconds: float,
        messages_max: int = BATCH_MESSAGES,
    ) -> None:
        self._build = build
        self._hand_over = hand_over
        self._timeout_seconds = timeout_seconds
        self._messages_max = messages_max
        self._loop = asyncio.get_running_loop()
        self._waiting: Waiting = []
        self._waiting_bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._under_way: dict[_Flight, None] = {}
        """In the order of their deadlines."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, row: Row) -> asyncio.Future[Receipt]:
        """The future resolves when the message is durable."""
        receipt: asyncio.Future[Receipt] = self._loop.create_future()
        if not self._under_way and not self._waiting:
            self._send([(row, receipt)])
            return receipt
        self._waiting.append((row, receipt))
        self._waiting_bytes += len(row.payload)
        if len(self._waiting) >= self._messages_max or self._waiting_bytes >= BATCH_BYTES:
            self._flush()
        elif self._scheduled is None:
            self._scheduled = self._loop.call_soon(self._flush)
        return receipt

    def _flush(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._send(waiting)

    def _send(self, waiting: Waiting) -> None:
        flight = _Flight(waiting, self._loop.time() + self._timeout_seconds)
        self._under_way[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_at(flight.deadline, self._expire)
        try:
            self._hand_over(self._build([row for row, _ in waiting]), partial(self._landed, flight))
        except Exception as error:
            self._landed(flight, None, error)

    def _landed(self, flight: _Flight, receipts: Receipts | None, error: BaseException | None) -> None:
        self._under_way.pop(flight, None)
        waiting = flight.waiting
        if receipts is not None:
            _resolve(waiting, receipts)
        elif len(waiting) > 1 and isinstance(error, SchemaMismatch) and 0 <= error.index < len(waiting):
            # It says whose fault it is: the others go again, together.
            alone = SchemaMismatch(error.topic, error.version, 0, error.path, error.problem)
            _fail([waiting.pop(error.index)], alone)
            self._send(waiting)
        elif len(waiting) > 1 and isinstance(error, InvalidMessage | QueueFull):
            # One message must not be refused for another one's fault.
            for each in waiting:
                self._send([each])
        else:
            assert error is not None
            _fail(waiting, error)

    def _expire(self) -> None:
        """One timer, for what has been under way longest: it is set again when it rings, not for each that goes."""
        self._timer = None
        now = self._loop.time()
        while self._under_way:
            oldest = next(iter(self._under_way))
            if oldest.deadline > now:
                self._timer = self._loop.call_at(oldest.deadline, self._expire)
                return
            del self._under_way[oldest]
            problem = f"publish was not done within {self._timeout_seconds:g} s; it may still happen"
            _fail(oldest.waiting, DeadlineExceeded(problem))


def _resolve(waiting: Waiting, receipts: Receipts) -> None:
    if len(waiting) == 1 and len(receipts) == 1:
        future = waiting[0][1]
        if not future.done():
            future.set_result(receipts[0])
        return
    for (_, future), receipt in zip(waiting, receipts, strict=True):
        if not future.done():
            future.set_result(receipt)


def _fail(waiting: Waiting, error: BaseException) -> None:
    for _, future in waiting:
        if not future.done():
            future.set_exception(error)
