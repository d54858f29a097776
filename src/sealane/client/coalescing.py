"""Small publishes become batches: what is published in the same moment is built, sealed and committed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from sealane.client.broker import Landed
from sealane.errors import DeadlineExceeded, InvalidMessage, QueueFull, SchemaMismatch
from sealane.message import Batch, Row
from sealane.message.payloads import together
from sealane.node.receipts import Receipt, Receipts

BATCH_MESSAGES = 4_096
BATCH_BYTES = 1 << 20
"""A batch of what was published by several calls is closed at this size."""
CALL_MESSAGES_MAX = 1_024
CALL_BYTES_MAX = 256 << 10
"""What one call publishes is gathered with others' up to this size: what is larger is a good batch of its own."""
FLIGHTS_MAX = 2
"""While so many batches of a topic are under way, the next calls gather until one of them has landed."""
GATHER_SECONDS_MAX = 0.002
"""They gather no longer than this: one batch that takes long must not hold up what could be stored beside it."""


def size_of_few(messages: object) -> int | None:
    """The bytes of payloads that are few and small enough to be gathered with others; else None."""
    if not isinstance(messages, list | tuple) or not 0 < len(messages) <= CALL_MESSAGES_MAX:
        return None
    try:
        size = together(messages)
    except TypeError:
        return None  # Whoever builds a batch of them says what is wrong.
    return size if size <= CALL_BYTES_MAX else None


class Builds(Protocol):
    """Makes batches of what was gathered: `node.outgoing.Outgoing`."""

    def build(self, rows: list[Row]) -> Batch: ...

    def build_plain(self, payloads: list[bytes]) -> Batch: ...


class _Call(msgspec.Struct, eq=False):
    """What one call publishes, and who waits for it: one message, or payloads that have nothing else."""

    future: asyncio.Future[Any]
    row: Row | None
    payloads: Sequence[bytes] = ()

    def __len__(self) -> int:
        return 1 if self.row is not None else len(self.payloads)

    def __repr__(self) -> str:
        # Payloads and keys stay out of logs.
        return f"<call of {len(self):,} messages>"

    def rows(self) -> list[Row]:
        return [self.row] if self.row is not None else list(map(Row, self.payloads))

    def succeed(self, result: Receipt | Sequence[Receipt]) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Flight(msgspec.Struct, eq=False):
    """Calls whose messages went together, and when their time is up."""

    calls: list[_Call]
    deadline: float


class Coalescer:
    """Gathers the messages for one topic that are published at about the same time.

    What a call publishes goes out within it if nothing else of the topic is under way: it would wait for nobody.
    While something is, the rest of the pass of the event loop gathers, so that any number of concurrent calls are two
    batches. While `FLIGHTS_MAX` are, it gathers until one of them has landed, `gather_seconds_max` at most: a broker
    that has fallen behind gets fewer and larger batches, which cost it less, and catches up.

    `hand_over` hands a batch over in that moment. The futures fail with `DeadlineExceeded` after `timeout_seconds`.
    """

    def __init__(
        self,
        outgoing: Builds,
        hand_over: Callable[[Batch, Landed], None],
        timeout_seconds: float,
        messages_max: int = BATCH_MESSAGES,
        *,
        gather_seconds_max: float = GATHER_SECONDS_MAX,
    ) -> None:
        self._outgoing = outgoing
        self._hand_over = hand_over
        self._timeout_seconds = timeout_seconds
        self._messages_max = messages_max
        self._gather_seconds_max = gather_seconds_max
        self._loop = asyncio.get_running_loop()
        self._gathered: list[_Call] = []
        """What waits for the end of the pass, or for a batch to land."""
        self._gathered_messages = 0
        self._gathered_bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._under_way: dict[_Flight, None] = {}
        """In the order of their deadlines."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, row: Row) -> asyncio.Future[Receipt]:
        """The future resolves when the message is durable."""
        call = _Call(self._loop.create_future(), row)
        self._add(call, 1, len(row.payload))
        return call.future

    def add_many(self, payloads: Sequence[bytes], size: int) -> asyncio.Future[Sequence[Receipt]]:
        """The same for payloads that one call publishes, of so many bytes: they stay together in one batch."""
        call = _Call(self._loop.create_future(), None, payloads)
        self._add(call, len(payloads), size)
        return call.future

    def _add(self, call: _Call, messages: int, size: int) -> None:
        if not self._gathered:
            if not self._under_way:
                self._send([call])
                return
        elif self._gathered_messages + messages > self._messages_max:
            self.flush()
        self._gathered.append(call)
        self._gathered_messages += messages
        self._gathered_bytes += size
        if self._gathered_messages >= self._messages_max or self._gathered_bytes >= BATCH_BYTES:
            self.flush()
        elif self._scheduled is None:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
        if len(self._under_way) < FLIGHTS_MAX:
            self._scheduled = self._loop.call_soon(self.flush)
        else:
            self._scheduled = self._loop.call_later(self._gather_seconds_max, self.flush)

    def flush(self) -> None:
        """Send what has gathered now, before something that must not overtake it."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        calls = [call for call in self._gathered if not call.future.done()]
        self._gathered, self._gathered_messages, self._gathered_bytes = [], 0, 0
        if calls:
            self._send(calls)

    def _send(self, calls: list[_Call]) -> None:
        flight = _Flight(calls, self._loop.time() + self._timeout_seconds)
        self._under_way[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_at(flight.deadline, self._expire)
        try:
            self._hand_over(self._built(calls), partial(self._landed, flight))
        except Exception as error:
            self._landed(flight, None, error)

    def _built(self, calls: list[_Call]) -> Batch:
        if any(call.row is not None for call in calls):
            return self._outgoing.build([row for call in calls for row in call.rows()])
        return self._outgoing.build_plain([payload for call in calls for payload in call.payloads])

    def _landed(self, flight: _Flight, receipts: Receipts | None, error: BaseException | None) -> None:
        self._under_way.pop(flight, None)
        calls = flight.calls
        if receipts is not None:
            _succeed(calls, receipts)
        elif len(calls) > 1 and isinstance(error, SchemaMismatch) and _take_out(calls, error):
            self._send(calls)  # The others go again, together.
        elif len(calls) > 1 and isinstance(error, InvalidMessage | QueueFull):
            # One call must not be refused for another one's fault.
            for call in calls:
                self._send([call])
        else:
            assert error is not None
            for call in calls:
                call.fail(error)
        self._make_way()

    def _make_way(self) -> None:
        if self._gathered and len(self._under_way) < FLIGHTS_MAX:
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
            error = DeadlineExceeded(f"publish was not done within {self._timeout_seconds:g} s; it may still happen")
            for call in oldest.calls:
                call.fail(error)
            self._make_way()


def _succeed(calls: list[_Call], receipts: Receipts) -> None:
    if len(calls) == 1:
        [call] = calls
        call.succeed(receipts[0] if call.row is not None else receipts)
        return
    if len(calls) == len(receipts):
        for call, receipt in zip(calls, receipts, strict=True):
            call.succeed(receipt if call.row is not None else [receipt])
        return
    start = 0
    for call in calls:
        stop = start + len(call)
        call.succeed(receipts[start] if call.row is not None else receipts.part(start, stop))
        start = stop


def _take_out(calls: list[_Call], error: SchemaMismatch) -> bool:
    """Whether the error says whose fault it is: that call is told, and is no longer among them."""
    index = error.index
    for place, call in enumerate(calls):
        if 0 <= index < len(call):
            call.fail(SchemaMismatch(error.topic, error.version, index, error.path, error.problem))
            del calls[place]
            return True
        index -= len(call)
    return False
