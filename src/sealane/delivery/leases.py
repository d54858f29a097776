"""Leases: messages handed to one consumer until a deadline."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from pyroaring import BitMap64

DEADLINES_SPARE = 1_024
"""Deadlines of leases that are over are cleared away when there are this many more deadlines than twice the leases."""


@dataclass(slots=True)
class Lease:
    id: int
    consumer: str
    offsets: BitMap64
    """What is still outstanding of it."""
    deadline_us: int
    bound: bool


@dataclass(slots=True)
class LeaseTable:
    """The live leases of a subscription. One lease is one object, whatever the number of messages."""

    by_id: dict[int, Lease] = field(default_factory=dict)
    outstanding: BitMap64 = field(default_factory=BitMap64)
    _deadlines: list[tuple[int, int]] = field(default_factory=list)

    def add(self, lease: Lease) -> None:
        self.by_id[lease.id] = lease
        self.outstanding |= lease.offsets
        self._watch(lease)

    def extend(self, lease_id: int, deadline_us: int) -> None:
        lease = self.by_id.get(lease_id)
        if lease is not None:
            lease.deadline_us = deadline_us
            self._watch(lease)

    def _watch(self, lease: Lease) -> None:
        heapq.heappush(self._deadlines, (lease.deadline_us, lease.id))
        if len(self._deadlines) > 2 * len(self.by_id) + DEADLINES_SPARE:
            self._deadlines = [(live.deadline_us, live.id) for live in self.by_id.values()]
            heapq.heapify(self._deadlines)

    def held(self, lease_id: int, offsets: BitMap64 | None) -> BitMap64:
        """Of the offsets (None: all), those that the lease still holds."""
        lease = self.by_id.get(lease_id)
        if lease is None:
            return BitMap64()
        return lease.offsets.copy() if offsets is None else lease.offsets & offsets

    def revoke(self, offsets: BitMap64) -> None:
        """End any hold on these offsets, whichever leases they are under. Looks at every lease: for rare things."""
        if not self.outstanding.intersect(offsets):
            return
        self.outstanding -= offsets
        for lease in [lease for lease in self.by_id.values() if lease.offsets.intersect(offsets)]:
            lease.offsets -= offsets
            if not lease.offsets:
                del self.by_id[lease.id]

    def remove(self, lease_id: int, offsets: BitMap64) -> None:
        """End the hold of one lease on these offsets."""
        lease = self.by_id.get(lease_id)
        if lease is None:
            return
        self.outstanding -= offsets
        lease.offsets -= offsets
        if not lease.offsets:
            del self.by_id[lease_id]

    def of_consumer(self, consumer: str) -> list[Lease]:
        return [lease for lease in self.by_id.values() if lease.consumer == consumer]

    def pop_expired(self, now_us: int) -> list[Lease]:
        """The leases whose deadline has passed; they stay in the table until their offsets are removed."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now_us:
            deadline_us, lease_id = heapq.heappop(self._deadlines)
            lease = self.by_id.get(lease_id)
            if lease is not None and lease.deadline_us == deadline_us:
                expired.append(lease)
        return expired

    def next_deadline_us(self) -> int | None:
        while self._deadlines:
            deadline_us, lease_id = self._deadlines[0]
            lease = self.by_id.get(lease_id)
            if lease is not None and lease.deadline_us == deadline_us:
                return deadline_us
            heapq.heappop(self._deadlines)
        return None

    def clear(self) -> None:
        self.by_id.clear()
        self.outstanding.clear()
        self._deadlines.clear()

    def check(self) -> None:
        """Assert that what is outstanding is what the leases hold, each offset once."""
        held = BitMap64()
        for lease in self.by_id.values():
            assert lease.offsets, f"lease {lease.id} is empty and kept"
            assert not held.intersect(lease.offsets), f"{held & lease.offsets} is under two leases"
            held |= lease.offsets
        assert held == self.outstanding, f"outstanding and leased differ in {held ^ self.outstanding}"
