"""Single publishes become batches: what is published in the same moment is built, sealed and committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from sealane.client.broker import Landed
from sealane.errors import DeadlineExceeded, InvalidMessage, QueueFull, SchemaMismatch
from sealane.message import Batch, Row
from sealane.node.receipts import Receipt, Receipts

BATCH_MESSAGES = 4_096
BATCH_BYTES = 1 << 20
"""A batch of single messages is closed at this size."""
FLIGHTS_MAX = 2
"""While so many batches of a topic's single messages are under way, the next ones gather until one has landed."""
GATHER_SECONDS_MAX = 0.002
"""They gather no longer than this: one batch that takes long must not hold up what could be stored beside it."""

Futures = list[asyncio.Future[Receipt]]


class _Flight(msgspec.Struct, eq=False):
    """Messages that went together, who waits for each of them, and when their time is up."""

    rows: list[Row]
    futures: Futures
    deadline: float

    def __repr__(self) -> str:
        # Payloads and keys stay out of logs.
        return f"<flight of {len(self.rows):,} messages>"


class Coalescer:
    """Gathers the messages for one topic that are published at about the same time.

    A message goes out in the call that publishes it if no other of the topic is under way: it would wait for nobody.
    While one is, the rest of the pass of the event loop gathers, so that any number of concurrent publishes are two
    batches. While `FLIGHTS_MAX` are, it gathers until one of them has landed, `gather_seconds_max` at most: a broker
    that has fallen behind gets fewer and larger batches, which cost it less, and catches up.

    `hand_over` hands a batch over in that moment. The futures fail with `DeadlineExceeded` after `timeout_seconds`.
    """

    def __init__(
        self,
        build: Callable[[list[Row]], Batch],
        hand_over: Callable[[Batch, Landed], None],
        timeout_seconds: float,
        messages_max: int = BATCH_MESSAGES,
        *,
        gather_seconds_max: float = GATHER_SECONDS_MAX,
    ) -> None:
        self._build = build
        self._hand_over = hand_over
        self._timeout_seconds = timeout_seconds
        self._messages_max = messages_max
        self._gather_seconds_max = gather_seconds_max
        self._loop = asyncio.get_running_loop()
        self._rows: list[Row] = []
        """What waits for the end of the pass, or for a batch to land, and in `_futures` who waits for it."""
        self._futures: Futures = []
        self._waiting_bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._under_way: dict[_Flight, None] = {}
        """In the order of their deadlines."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, row: Row) -> asyncio.Future[Receipt]:
        """The future resolves when the message is durable."""
        receipt: asyncio.Future[Receipt] = self._loop.create_future()
        if not self._under_way and not self._rows:
            self._send([row], [receipt])
            return receipt
        self._rows.append(row)
        self._futures.append(receipt)
        self._waiting_bytes += len(row.payload)
        if len(self._rows) >= self._messages_max or self._waiting_bytes >= BATCH_BYTES:
            self._flush()
        elif self._scheduled is None:
            self._flush_soon()
        return receipt

    def _flush_soon(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
        if len(self._under_way) < FLIGHTS_MAX:
            self._scheduled = self._loop.call_soon(self._flush)
        else:
            self._scheduled = self._loop.call_later(self._gather_seconds_max, self._flush)

    def _flush(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        rows, futures = self._rows, self._futures
        self._rows, self._futures, self._waiting_bytes = [], [], 0
        if rows:
            self._send(rows, futures)

    def _send(self, rows: list[Row], futures: Futures) -> None:
        flight = _Flight(rows, futures, self._loop.time() + self._timeout_seconds)
        self._under_way[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_at(flight.deadline, self._expire)
        try:
            self._hand_over(self._build(rows), partial(self._landed, flight))
        except Exception as error:
            self._landed(flight, None, error)

    def _landed(self, flight: _Flight, receipts: Receipts | None, error: BaseException | None) -> None:
        self._under_way.pop(flight, None)
        rows, futures = flight.rows, flight.futures
        if receipts is not None:
            _resolve(futures, receipts)
        elif len(rows) > 1 and isinstance(error, SchemaMismatch) and 0 <= error.index < len(rows):
            # It says whose fault it is: the others go again, together.
            alone = SchemaMismatch(error.topic, error.version, 0, error.path, error.problem)
            del rows[error.index]
            _fail([futures.pop(error.index)], alone)
            self._send(rows, futures)
        elif len(rows) > 1 and isinstance(error, InvalidMessage | QueueFull):
            # One message must not be refused for another one's fault.
            for row, future in zip(rows, futures, strict=True):
                self._send([row], [future])
        else:
            assert error is not None
            _fail(futures, error)
        self._make_way()

    def _make_way(self) -> None:
        if self._rows and len(self._under_way) < FLIGHTS_MAX:
            self._flush_soon()

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
            _fail(oldest.futures, DeadlineExceeded(problem))
            self._make_way()


def _resolve(futures: Futures, receipts: Receipts) -> None:
    if len(futures) == 1:
        if not futures[0].done():
            futures[0].set_result(receipts[0])
        return
    for future, receipt in zip(futures, receipts, strict=True):
        if not future.done():
            future.set_result(receipt)


def _fail(futures: Futures, error: BaseException) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
