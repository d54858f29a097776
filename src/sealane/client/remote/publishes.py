"""The publishes of a lane: in order for each target, numbered, and sent again on the next link until they are answered.

The node knows a batch again by its producer and sequence, or by the ids that its messages were given, and then answers
with the first one's receipts: however often a link is lost, each batch is stored once.

What a rate limit refuses is sent again when the node said, before anything that came after it, for as long as its time
allows. Quotas are of principals and domains, not of targets: all lines pause, so that a large batch is not kept
waiting by small ones of other lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from sealane.client.remote.link import Link
from sealane.client.remote.publish_line import Finish, Landed, Pending, PublishLine
from sealane.client.remote.reconnecting import ReconnectingLink
from sealane.client.remote.requests import checked
from sealane.errors import Closed, DeadlineExceeded, InvalidArgument, RateLimited, SealaneError, Unavailable
from sealane.message import Batch, encode_parts
from sealane.wire.faults import error_of
from sealane.wire.messages import Publish, Refused

STOPPING = frozenset({"unavailable", "closed"})
"""How a node that is stopping refuses: the same request is right for the next link."""
SWEEP_SECONDS = 1.0


class Publishes:
    """A user of one reconnecting link."""

    def __init__(
        self,
        line: ReconnectingLink,
        entropy: Callable[[int], bytes],
        timeout_seconds: float,
        *,
        wait_when_limited: bool = True,
    ) -> None:
        self._link_of = line
        self._entropy = entropy
        self._timeout_seconds = timeout_seconds
        self._wait_when_limited = wait_when_limited
        self._loop = asyncio.get_running_loop()
        self._lines: dict[tuple[type, str], PublishLine] = {}
        self._waiting: dict[PublishLine, None] = {}
        """Lines with something unsent."""
        self._link: Link | None = None
        """Where they are sent; the next one only when everything on this one is answered or lost."""
        self._next: Link | None = None
        self._in_flight = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed: SealaneError | None = None
        self._pause: asyncio.TimerHandle | None = None
        """Until when a rate limit lets nothing through."""
        self.limited_by: RateLimited | None = None
        """What `_pause` is for."""
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
                line = self._lines[key] = PublishLine(self._entropy(16))
            elif type(request) is not Publish:
                checked(request)
        except InvalidArgument as error:
            landed(None, error)
            return
        deadline = self._loop.time() + self._timeout_seconds
        pending = Pending(request, batch, finish, landed, deadline, future, next(line.places))
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

    def _send_from(self, line: PublishLine) -> None:
        link = self._link
        while link is not None and line.unsent and self._may_send(link, line):
            pending = line.unsent.popleft()
            if not pending.over:
                self._send(link, line, pending)
        if not line.unsent:
            self._waiting.pop(line, None)

    def _may_send(self, link: Link, line: PublishLine) -> bool:
        return self._pause is None and len(line.sent) < line.window and link.takes_publishes

    def _send(self, link: Link, line: PublishLine, pending: Pending) -> None:
        line.sending(pending)
        self._in_flight += 1
        head, records = encode_parts(pending.batch)
        body = (head, memoryview(records).cast("B"))
        link.ask(pending.request, body, partial(self._answered, line, pending))

    def _answered(
        self, line: PublishLine, pending: Pending, reply: Any, body: memoryview, error: SealaneError | None
    ) -> None:
        self._in_flight -= 1
        link = self._link
        if error is None and type(reply) is not Refused:
            self._taken(line, pending, reply)
        elif isinstance(error, Unavailable):
            return  # The link is lost: `lost` takes back everything that was sent on it.
        elif error is None and link is not None and _is_stopping(link, reply.code):
            # It stays among what was sent, in its place, until the rest is answered and the next link takes over.
            if link.takes_requests:
                link.abort()
            self._move_on()
            return
        else:
            self._refused(line, pending, error or error_of(reply.code, reply.text, reply.fields))
        if link is None or not link.takes_requests:
            self._move_on()
        elif self._waiting:
            self._send_all()

    def _taken(self, line: PublishLine, pending: Pending, reply: Any) -> None:
        line.answered(pending, taken=True)
        try:
            result = pending.finish(reply, pending.batch)
        except SealaneError as problem:
            pending.land(None, problem)
        else:
            pending.land(result, None)

    def _refused(self, line: PublishLine, pending: Pending, error: SealaneError) -> None:
        line.answered(pending, taken=False)
        if isinstance(error, RateLimited):
            self._limited(line, pending, error)
        else:
            pending.land(None, error)

    # --- rate limits --------------------------------------------------------------------------------------------------

    def _limited(self, line: PublishLine, pending: Pending, error: RateLimited) -> None:
        again = self._loop.time() + error.retry_after_seconds
        if again >= pending.deadline or not (self._wait_when_limited or pending.doubtful):
            problem = f"publish was not done within {self._timeout_seconds:g} s; it may have happened ({error})"
            self._give_up(line, pending, DeadlineExceeded(problem) if pending.doubtful else error)
            return
        line.put_back(pending)
        self._waiting = {line: None, **self._waiting}  # Nobody's turn comes before its next one.
        if self._pause is None or again > self._pause.when():
            if self._pause is not None:
                self._pause.cancel()
            self.limited_by = error
            self._pause = self._loop.call_at(again, self._go_on)

    def _go_on(self) -> None:
        self._pause = self.limited_by = None
        self._send_all()

    def _give_up(self, line: PublishLine, pending: Pending, error: SealaneError) -> None:
        pending.land(None, error)
        for follower in line.followers(pending):
            follower.land(None, error)

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
            for those in (list(line.sent), list(line.unsent)):
                for pending in those:
                    if pending.deadline > now:
                        busy = True
                        break
                    if not pending.over:
                        self._give_up(line, pending, self._too_late(line, pending))
            while line.unsent and line.unsent[0].over:
                line.unsent.popleft()
        self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep) if busy else None

    def _too_late(self, line: PublishLine, pending: Pending) -> SealaneError:
        if self.limited_by is not None and pending not in line.sent and not pending.doubtful:
            return self.limited_by
        problem = f"publish was not done within {self._timeout_seconds:g} s; it may still happen"
        trouble = self._link_of.trouble
        return DeadlineExceeded(problem + (f" ({trouble})" if trouble else ""))

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
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None


def _is_stopping(link: Link, code: str) -> bool:
    return code == "closed" or (code in STOPPING and not link.takes_requests)
