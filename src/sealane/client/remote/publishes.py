"""The publishes of a lane: in order for each target, numbered, and sent again on the next link until they are answered.

The node knows a batch again by its producer and sequence, or by the ids that its messages were given, and then answers
with the first one's receipts: however often a link is lost, each batch is stored once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from sealane.client.remote.link import Link
from sealane.client.remote.reconnecting import ReconnectingLink
from sealane.client.remote.requests import checked
from sealane.delivery.producers import REMEMBERED_BATCHES
from sealane.errors import Closed, DeadlineExceeded, InvalidArgument, SealaneError, Unavailable
from sealane.message import Batch, BatchMeta, encode_parts
from sealane.message.batch import DEFAULT_META
from sealane.wire.faults import error_of
from sealane.wire.messages import Publish, Refused

BATCHES_IN_FLIGHT_MAX = REMEMBERED_BATCHES
"""Batches of one target without an answer: as many as a partition remembers of a producer. Later ones wait here."""
STOPPING = frozenset({"unavailable", "closed"})
"""How a node that is stopping refuses: the same request is right for the next link."""
SWEEP_SECONDS = 1.0


Finish = Callable[[Any, Batch], Any]
"""Makes what the caller gets from the answer and the batch."""
Landed = Callable[[Any, BaseException | None], None]
"""Told what `Finish` made, or why there is nothing; once."""


class _Pending:
    """A batch that has not been answered, and who is to be told."""

    __slots__ = ("_landed", "_over", "batch", "deadline", "finish", "future", "request")

    def __init__(
        self,
        request: Any,
        batch: Batch,
        finish: Finish,
        landed: Landed,
        deadline: float,
        future: asyncio.Future[Any] | None,
    ) -> None:
        self.request = request
        self.batch = batch
        self.finish = finish
        self.deadline = deadline
        self.future = future
        """What the caller holds, if that is one who may give up."""
        self._landed = landed
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._over or (self.future is not None and self.future.done())

    def land(self, result: Any, error: BaseException | None) -> None:
        if not self._over:
            self._over = True
            self._landed(result, error)


class _Line:
    """The batches for one target, in order."""

    __slots__ = ("by_producer", "producer", "sent", "sequence", "unsent")

    def __init__(self, producer: bytes) -> None:
        self.producer = producer
        self.sequence = 0
        self.unsent: deque[_Pending] = deque()
        self.sent: dict[_Pending, None] = {}
        self.by_producer: dict[bytes, dict[_Pending, None]] = {}
        """What was sent of producers whose batches come numbered."""

    def number(self, batch: Batch) -> Batch:
        """A batch that the node can know again."""
        meta = batch.meta
        if meta.given_ids or meta.producer is not None:
            return batch
        sequence = self.sequence
        self.sequence += 1
        if meta is DEFAULT_META:
            return batch.with_meta(BatchMeta(False, self.producer, sequence))
        return batch.with_meta(msgspec.structs.replace(meta, producer=self.producer, sequence=sequence))

    def sending(self, pending: _Pending) -> None:
        """Note what is sent now. Of a producer whose caller numbers its batches nothing may be stored behind one that
        is refused: the request names the last one of it that is under way.
        """
        self.sent[pending] = None
        producer = pending.batch.meta.producer
        if producer is None or producer is self.producer:
            return
        others = self.by_producer.setdefault(producer, {})
        if type(pending.request) is Publish:
            pending.request.after = next(reversed(others)).request.call if others else 0
        others[pending] = None

    def answered(self, pending: _Pending) -> None:
        self.sent.pop(pending, None)
        producer = pending.batch.meta.producer
        if producer is not None and (others := self.by_producer.get(producer)) is not None:
            others.pop(pending, None)
            if not others:
                del self.by_producer[producer]

    def take_back(self) -> None:
        """What was sent and not answered is to be sent again, in its order; what nobody waits for is dropped."""
        again = [pending for pending in self.sent if not pending.over]
        self.sent.clear()
        self.by_producer.clear()
        for pending in reversed(again):
            self.unsent.appendleft(pending)


class Publishes:
    """A user of one reconnecting link."""

    def __init__(self, line: ReconnectingLink, entropy: Callable[[int], bytes], timeout_seconds: float) -> None:
        self._link_of = line
        self._entropy = entropy
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._lines: dict[tuple[type, str], _Line] = {}
        self._waiting: dict[_Line, None] = {}
        """Lines with something unsent."""
        self._link: Link | None = None
        """Where they are sent; the next one only when everything on this one is answered or lost."""
        self._next: Link | None = None
        self._in_flight = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed: SealaneError | None = None
        line.users[self] = None

    def publish(self, target: str, request: Any, batch: Batch, finish: Finish) -> asyncio.Future[Any]:
        """Send the batch to its target, now or as soon as it can be; `finish` makes the result from the answer.

        Batches for one target are stored in the order of these calls. One that nobody waits for any more, and that was
        not sent yet, is not sent.
        """
        future: asyncio.Future[Any] = self._loop.create_future()

        def landed(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
                future.exception()  # Who waits sees it; that nobody may wait is no stray error.

        self.hand_over(target, request, batch, finish, landed, future)
        return future

    def hand_over(
        self,
        target: str,
        request: Any,
        batch: Batch,
        finish: Finish,
        landed: Landed,
        future: asyncio.Future[Any] | None = None,
    ) -> None:
        """The same for who needs no future: `landed` is told the outcome, once, and before this returns if there can
        be none.
        """
        if self._closed is not None:
            landed(None, self._closed)
            return
        key = (type(request), target)
        line = self._lines.get(key)
        try:
            if line is None:
                checked(request)
                line = self._lines[key] = _Line(self._entropy(16))
            elif type(request) is not Publish:
                checked(request)
        except InvalidArgument as error:
            landed(None, error)
            return
        deadline = self._loop.time() + self._timeout_seconds
        pending = _Pending(request, line.number(batch), finish, landed, deadline, future)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        link = self._link
        if link is not None and not line.unsent and self._may_send(link, line):
            self._send(link, line, pending)  # Nearly always: nothing is before it, and the line is free.
            return
        line.unsent.append(pending)
        self._waiting[line] = None
        if link is None:
            self._link_of.begin()
        else:
            self._send_from(line)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send_all(self) -> None:
        for line in list(self._waiting):
            self._send_from(line)

    def _send_from(self, line: _Line) -> None:
        link = self._link
        while link is not None and line.unsent and self._may_send(link, line):
            pending = line.unsent.popleft()
            if not pending.over:
                self._send(link, line, pending)
        if not line.unsent:
            self._waiting.pop(line, None)

    def _may_send(self, link: Link, line: _Line) -> bool:
        return link.takes_publishes and len(line.sent) < BATCHES_IN_FLIGHT_MAX

    def _send(self, link: Link, line: _Line, pending: _Pending) -> None:
        line.sending(pending)
        self._in_flight += 1
        head, records = encode_parts(pending.batch)
        body = (head, memoryview(records).cast("B"))
        link.ask(pending.request, body, partial(self._answered, line, pending))

    def _answered(
        self, line: _Line, pending: _Pending, reply: Any, body: memoryview, error: SealaneError | None
    ) -> None:
        self._in_flight -= 1
        if isinstance(error, Unavailable):
            return  # The link is lost: `lost` takes back everything that was sent on it.
        refused = type(reply) is Refused
        link = self._link
        if refused and link is not None and _is_stopping(link, reply.code):
            # It stays among what was sent, in its place, until the rest is answered and the next link takes over.
            if link.takes_requests:
                link.abort()
            self._move_on()
            return
        line.answered(pending)
        if refused:
            error = error_of(reply.code, reply.text, reply.fields)
        result = None
        if error is None and not pending.over:
            try:
                result = pending.finish(reply, pending.batch)
            except SealaneError as problem:
                error = problem
        pending.land(result, error)
        if link is None or not link.takes_requests:
            self._move_on()
        elif self._waiting:
            self._send_all()

    def _move_on(self) -> None:
        """Go over to the next link, if nothing on this one is still to be answered."""
        if self._in_flight and self._link is not None and self._link.open:
            return
        for line in self._lines.values():
            if line.sent:
                line.take_back()
            if line.unsent:
                self._waiting[line] = None
        self._link, self._next = self._next, None
        self._send_all()

    # --- what happens to links ----------------------------------------------------------------------------------------

    def linked(self, link: Link) -> None:
        self._next = link
        if self._link is None:
            self._move_on()

    def draining(self, link: Link) -> None:
        if link is self._link:
            self._move_on()

    def lost(self, link: Link) -> None:
        if link is self._next:
            self._next = None
        if link is self._link:
            self._in_flight = 0
            self._move_on()

    def writable(self, link: Link) -> None:
        if link is self._link:
            self._send_all()

    def failed(self, error: SealaneError) -> None:
        self._fail_all(error)

    # --- deadlines and the end ----------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """What is past its deadline has failed. Coarse: who waits has a finer deadline of their own."""
        now = self._loop.time()
        busy = False
        for line in self._lines.values():
            for pending in (*line.sent, *line.unsent):
                if pending.deadline > now:
                    busy = True
                    break
                if not pending.over:
                    problem = f"publish was not done within {self._timeout_seconds:g} s; it may still happen"
                    trouble = self._link_of.trouble
                    pending.land(None, DeadlineExceeded(problem + (f" ({trouble})" if trouble else "")))
            while line.unsent and line.unsent[0].over:
                line.unsent.popleft()
        self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep) if busy else None

    def _fail_all(self, error: SealaneError) -> None:
        for line in self._lines.values():
            for pending in (*line.sent, *line.unsent):
                pending.land(None, error)
            line.unsent.clear()
        self._waiting.clear()

    def close(self) -> None:
        self._closed = Closed("the lane is closed")
        self._fail_all(self._closed)
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None


def _is_stopping(link: Link, code: str) -> bool:
    return code == "closed" or (code in STOPPING and not link.takes_requests)
