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


class Pending(msgspec.Struct, eq=False):
    """A batch that has not been answered, and who is to be told."""

    request: Any
    batch: Batch
    finish: Finish
    landed: Landed
    deadline: float
    future: asyncio.Future[Any] | None
    """What the caller holds, if that is one who may give up."""
    place: int
    """Among those of its line."""
    doubtful: bool = False
    """Whether it was sent on a link that was lost: it may be stored."""
    has_landed: bool = False

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.has_landed or (self.future is not None and self.future.done())

    def land(self, result: Any, error: BaseException | None) -> None:
        if not self.has_landed:
            self.has_landed = True
            self.landed(result, error)


class PublishLine:
    """What is under way is at most `window`: all that may be, until a rate limit refuses something. Then it is one
    batch, sent once everything that followed the refused one is back, and one more for each that is taken.
    """

    __slots__ = ("_sequences", "by_producer", "places", "producer", "sent", "unsent", "window")

    def __init__(self, producer: bytes) -> None:
        self.producer = producer
        self.unsent: deque[Pending] = deque()
        self.sent: dict[Pending, None] = {}
        self.by_producer: dict[bytes, dict[Pending, None]] = {}
        """What was sent of producers whose batches come numbered."""
        self.window = BATCHES_IN_FLIGHT_MAX
        self.places = count()
        """What comes next is given the next place."""
        self._sequences = count()

    def _numbered(self, batch: Batch) -> Batch:
        """The batch with what the node knows it by if it is sent again. Numbers go up in the order of sending: the node
        takes none that is older than what it has.
        """
        if batch.meta is DEFAULT_META:
            meta = BatchMeta(False, self.producer, next(self._sequences))
        else:
            meta = msgspec.structs.replace(batch.meta, producer=self.producer, sequence=next(self._sequences))
        return batch.with_meta(meta)

    def sending(self, pending: Pending) -> None:
        """Note what is sent now. It must not overtake what is under way before it, if a rate limit refuses that; and of
        a producer whose caller numbers its batches nothing may be stored behind one that is refused for any reason.
        """
        request, meta = pending.request, pending.batch.meta
        request.behind = next(reversed(self.sent)).request.call if self.sent else 0
        self.sent[pending] = None
        producer = meta.producer
        if producer is None:
            if not meta.given_ids:
                pending.batch = self._numbered(pending.batch)
            return
        if producer is self.producer:
            return  # It was sent before, and keeps its number.
        others = self.by_producer.setdefault(producer, {})
        if isinstance(request, Publish):
            request.after = next(reversed(others)).request.call if others else 0
        others[pending] = None

    def answered(self, pending: Pending, *, taken: bool) -> None:
        """`taken`: the node stored it. If the line was slowed down, it may have one more under way then."""
        self.sent.pop(pending, None)
        if self.by_producer:
            self._forget_of_producer(pending)
        if taken and self.window < BATCHES_IN_FLIGHT_MAX:
            self.window += 1

    def _forget_of_producer(self, pending: Pending) -> None:
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

    def followers(self, pending: Pending) -> list[Pending]:
        """What waits behind it, and must not be stored without it."""
        producer = pending.batch.meta.producer
        if producer is None or producer is self.producer:
            return []
        return [each for each in self.unsent if each.batch.meta.producer == producer and each.place > pending.place]


def _place(pending: Pending) -> int:
    return pending.place
