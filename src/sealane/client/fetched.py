"""What a consumer has fetched ahead and not handed out yet."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

import msgspec
import numpy as np
from pyroaring import BitMap64

from sealane.client.opened import Opened
from sealane.errors import SealaneError
from sealane.node import Delivery, Part, Revocation
from sealane.node.deliveries import offsets_of


class _Waiting(msgspec.Struct, frozen=True, eq=False):
    """Messages that were not handed out yet, and until when they may wait for that."""

    delivery: Delivery
    part: Part
    until: float

    def is_of(self, partition: int, lease: int) -> bool:
        return self.delivery.lease == lease and self.delivery.partition == partition


class Fetched:
    """Deliveries that wait to be handed out, without what was revoked meanwhile.

    What waits for longer than `patience_seconds` is returned: its lease would end soon, and nobody has failed on it.
    """

    def __init__(
        self,
        patience_seconds: float | None,
        give_back: Callable[[Delivery, BitMap64], None],
        dropped: Callable[[int], None],
    ) -> None:
        self._patience_seconds = patience_seconds
        self._give_back = give_back
        self._dropped = dropped
        self._queue: deque[_Waiting] = deque()
        self.opened: Opened | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self.error: SealaneError | None = None

    def deliver(self, delivery: Delivery) -> None:
        until = math.inf
        if self._patience_seconds is not None:
            until = asyncio.get_running_loop().time() + self._patience_seconds
        for part in delivery.parts:
            self._queue.append(_Waiting(delivery, part, until))
        self._wake()
        if self._timer is None:
            self._arm()

    def revoke(self, revocation: Revocation) -> None:
        """Drop what is no longer ours, and make room for as much."""
        self._drop(revocation.partition, revocation.lease, revocation.offsets)

    def _drop(self, partition: int, lease: int, offsets: BitMap64) -> None:
        kept: deque[_Waiting] = deque()
        dropped = 0
        for waiting in self._queue:
            if waiting.is_of(partition, lease):
                part = _without(waiting.part, offsets)
                dropped += len(waiting.part.batch) - len(part.batch)
                waiting = msgspec.structs.replace(waiting, part=part)
            if len(waiting.part.batch):
                kept.append(waiting)
        self._queue = kept
        if self.opened is not None and self.opened.is_of(partition, lease):
            self.opened.withdraw(offsets)
        if dropped:
            self._dropped(dropped)

    def _arm(self) -> None:
        """One timer, for what has waited longest; it must not keep messages in memory, so it knows none."""
        oldest: Opened | _Waiting | None = self._queue[0] if self._queue else None
        if self.opened is not None and self.opened.rows:
            oldest = self.opened
        if self._timer is None and oldest is not None and oldest.until < math.inf:
            self._timer = asyncio.get_running_loop().call_at(oldest.until, self._return_what_waited_too_long)

    def _return_what_waited_too_long(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        returned: dict[Delivery, BitMap64] = {}
        for waiting in self._queue:
            if waiting.until <= now:
                offsets = returned.setdefault(waiting.delivery, BitMap64())
                offsets |= offsets_of(waiting.part)
        for delivery, offsets in returned.items():
            self._drop(delivery.partition, delivery.lease, offsets)
        if self.opened is not None and self.opened.until <= now:
            offsets = returned.setdefault(self.opened.delivery, BitMap64())
            offsets |= self.opened.withdraw()
        for delivery, offsets in returned.items():
            if offsets:
                self._give_back(delivery, offsets)
        self._arm()

    def fail(self, error: SealaneError) -> None:
        self.error = error
        self._wake()

    @property
    def ready(self) -> bool:
        """Whether something is there."""
        return bool(self._queue)

    async def wait(self) -> None:
        """Until something is there; raises if nothing can come any more."""
        while not self._queue:
            if self.error is not None:
                raise self.error
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter.cancelled() and waiter in self._waiters:
                    self._waiters.remove(waiter)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def take(self, count: int) -> tuple[Delivery, Part]:
        """The next messages, at most `count`, of one stored batch."""
        taken = self._take(count)
        return taken.delivery, taken.part

    def _take(self, count: int) -> _Waiting:
        waiting = self._queue.popleft()
        if len(waiting.part.batch) > count:
            self._queue.appendleft(msgspec.structs.replace(waiting, part=_rest(waiting.part, count)))
            first = Part(waiting.part.offsets[:count], waiting.part.batch.slice(0, count))
            waiting = msgspec.structs.replace(waiting, part=first)
        return waiting

    def same_lease_next(self, delivery: Delivery) -> bool:
        return bool(self._queue) and self._queue[0].delivery is delivery

    def open(self, count: int) -> Opened:
        """Take the next messages to hand them out one by one, as they are claimed."""
        taken = self._take(count)
        self.opened = Opened(taken.delivery, taken.part, taken.until)
        return self.opened

    def close_opened(self) -> None:
        """All that was opened is claimed, or was withdrawn."""
        self.opened = None
        if self._timer is None:
            self._arm()

    def forget(self) -> list[tuple[int, int, BitMap64]]:
        """The node does not hold it for us any more: drop what was not handed out, and make room for as much.

        Returns what that was: (partition, lease, offsets).
        """
        forgotten = [(item.delivery, offsets_of(item.part)) for item in self._queue]
        self._queue.clear()
        if self.opened is not None and (rest := self.opened.withdraw()):
            forgotten.insert(0, (self.opened.delivery, rest))  # Room for these is made when the opened ones are done.
            waited = sum(len(offsets) for _, offsets in forgotten[1:])
        else:
            waited = sum(len(offsets) for _, offsets in forgotten)
        if waited:
            self._dropped(waited)
        return [(delivery.partition, delivery.lease, offsets) for delivery, offsets in forgotten]

    def drain(self) -> list[tuple[Delivery, BitMap64]]:
        """What was not handed out; nothing of it is here any more."""
        waiting = [(item.delivery, offsets_of(item.part)) for item in self._queue]
        self._queue.clear()
        if self.opened is not None:
            if rest := self.opened.withdraw():
                waiting.insert(0, (self.opened.delivery, rest))
            self.opened = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return waiting


def _rest(part: Part, start: int) -> Part:
    return Part(part.offsets[start:], part.batch.slice(start, len(part.batch)))


def _without(part: Part, gone: BitMap64) -> Part:
    kept = [row for row, offset in enumerate(part.offsets) if int(offset) not in gone]
    if len(kept) == len(part.batch):
        return part
    rows = np.array(kept, dtype=np.int64)
    return Part(np.asarray(part.offsets, dtype=np.uint64)[rows], part.batch.take(rows))
