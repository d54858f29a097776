"""The batches of a lane for one target, in order: what waits, what was sent, and what goes back to be sent again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count, takewhile
from typing import Any

import msgspec

from sealane.delivery.producers import REMEMBERED_BATCHES
from sealane.message import Batch, BatchMeta
from sealane.message.batch import DEFAULT_META
from sealane.wire.messages import Publish

BATCHES_IN_FLIGHT_MAX = REMEMBERED_BATCHES
"""Batches of one target without an answer: as many as a partition remembers of a producer. Later ones wait here."""

Finish = Callable[[Any, Batch], Any]
"""Makes what the caller gets from the answer and the batch."""
Landed = Callable[[Any, BaseException | None], None]
"""Told what `Finish` made, or why there is nothing; once."""


class Pending:
    """A batch that has not been answered, and who is to be told."""

    __slots__ = (
        "_landed",
        "_over",
        "batch",
        "deadline",
        "doubtful",
        "finish",
        "future",
        "numbered",
        "place",
        "request",
    )

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
        self.numbered = False
        """Whether the node would know the batch again."""
        self.place = 0
        """Among those of its line."""
        self.doubtful = False
        """Whether it was sent on a link that was lost: it may be stored."""
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


class PublishLine:
    """What is under way is at most `window`: all that may be, until a rate limit refuses something. Then it is one
    batch, sent once everything that followed the refused one is back, and one more for each that is taken.
    """

    __slots__ = ("_places", "_sequences", "by_producer", "producer", "sent", "unsent", "window")

    def __init__(self, producer: bytes) -> None:
        self.producer = producer
        self.unsent: deque[Pending] = deque()
        self.sent: dict[Pending, None] = {}
        self.by_producer: dict[bytes, dict[Pending, None]] = {}
        """What was sent of producers whose batches come numbered."""
        self.window = BATCHES_IN_FLIGHT_MAX
        self._sequences = count()
        self._places = count()

    @property
    def has_room(self) -> bool:
        return len(self.sent) < self.window

    def add(self, pending: Pending) -> None:
        """Give it its place."""
        pending.place = next(self._places)

    def _number(self, pending: Pending) -> None:
        """Give the batch what the node knows it by if it is sent again. Numbers go up in the order of sending: the node
        takes none that is older than what it has.
        """
        pending.numbered = True
        meta = pending.batch.meta
        if meta.given_ids or self.is_numbered_by_caller(pending):
            return
        if meta is DEFAULT_META:
            numbered = BatchMeta(False, self.producer, next(self._sequences))
        else:
            numbered = msgspec.structs.replace(meta, producer=self.producer, sequence=next(self._sequences))
        pending.batch = pending.batch.with_meta(numbered)

    def is_numbered_by_caller(self, pending: Pending) -> bool:
        producer = pending.batch.meta.producer
        return producer is not None and producer is not self.producer

    def sending(self, pending: Pending) -> None:
        """Note what is sent now. It must not overtake what is under way before it, if a rate limit refuses that; and of
        a producer whose caller numbers its batches nothing may be stored behind one that is refused for any reason.
        """
        if not pending.numbered:
            self._number(pending)
        request = pending.request
        request.behind = next(reversed(self.sent)).request.call if self.sent else 0
        self.sent[pending] = None
        producer = pending.batch.meta.producer
        if producer is None or producer is self.producer:
            return
        others = self.by_producer.setdefault(producer, {})
        if isinstance(request, Publish):
            request.after = next(reversed(others)).request.call if others else 0
        others[pending] = None

    def answered(self, pending: Pending) -> None:
        self.sent.pop(pending, None)
        producer = pending.batch.meta.producer
        if producer is not None and (others := self.by_producer.get(producer)) is not None:
            others.pop(pending, None)
            if not others:
                del self.by_producer[producer]

    def take_back(self) -> None:
        """The link is lost: what was sent and not answered is to be sent again, in its order; what nobody waits for is
        dropped.
        """
        again = [pending for pending in self.sent if not pending.over]
        for pending in again:
            pending.doubtful = True
        self.sent.clear()
        self.by_producer.clear()
        self.unsent = deque(sorted((*again, *self.unsent), key=_place))

    def put_back(self, pending: Pending) -> None:
        """A rate limit refused it: it goes first when there is time for it, and what followed it comes back too."""
        self.window = 1
        earlier = sum(1 for _ in takewhile(lambda each: each.place < pending.place, self.unsent))
        self.unsent.insert(earlier, pending)

    def taken(self) -> None:
        """The node took a batch: if it was slowed down, it may have one more under way."""
        if self.window < BATCHES_IN_FLIGHT_MAX:
            self.window += 1

    def followers(self, pending: Pending) -> list[Pending]:
        """What waits behind it, and must not be stored without it."""
        if not self.is_numbered_by_caller(pending):
            return []
        producer = pending.batch.meta.producer
        return [each for each in self.unsent if each.batch.meta.producer == producer and each.place > pending.place]


def _place(pending: Pending) -> int:
    return pending.place
