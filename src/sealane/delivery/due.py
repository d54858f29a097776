"""Offsets that wait for a moment: parked for a retry or a delay, or due to expire."""

from __future__ import annotations

import heapq

from pyroaring import BitMap64

BUCKET_US = 1_000
"""Moments are rounded up to the millisecond, so that thousands of nacks a second share a few bitmaps."""
BUCKETS_SPARE = 64
"""Sweeping fewer buckets than this more often would save nothing."""


def rounded_up(moment_us: int) -> int:
    """When something that is due at this moment comes due here."""
    return -(-moment_us // BUCKET_US) * BUCKET_US


class DueSet:
    """Adding and popping cost a bitmap operation a distinct millisecond, whatever the number of offsets."""

    __slots__ = ("_buckets", "_discards", "_heap", "_stale", "members")

    def __init__(self) -> None:
        self._buckets: dict[int, BitMap64] = {}
        self._heap: list[int] = []
        self._stale = BitMap64()
        """Discarded, and still in some bucket."""
        self._discards = 0
        self.members = BitMap64()

    def __bool__(self) -> bool:
        return bool(self.members)

    def add(self, due_us: int, offsets: BitMap64) -> None:
        """Let the offsets become due at `due_us` (rounded up to the bucket), whenever they were due before."""
        if not offsets:
            return
        if self._stale.intersect(offsets) or self.members.intersect(offsets):
            self._stale |= offsets
            self._sweep()
        bucket = -(-due_us // BUCKET_US)
        waiting = self._buckets.get(bucket)
        if waiting is None:
            self._buckets[bucket] = offsets.copy()
            heapq.heappush(self._heap, bucket)
        else:
            waiting |= offsets
        self.members |= offsets

    def discard(self, offsets: BitMap64) -> None:
        """Forget the offsets; what their buckets still hold of them is ignored when it comes due."""
        if self.members.intersect(offsets):
            self._stale |= self.members & offsets
            self.members -= offsets
            self._discards += 1
            if 2 * self._discards > len(self._buckets) + BUCKETS_SPARE:
                self._sweep()

    def _sweep(self) -> None:
        """Take what was discarded out of the buckets; done once in half as many discards as there are buckets."""
        for bucketed in self._buckets.values():
            bucketed -= self._stale
        self._buckets = {bucket: bucketed for bucket, bucketed in self._buckets.items() if bucketed}
        self._heap = sorted(self._buckets)
        self._stale.clear()
        self._discards = 0

    def pop_due(self, now_us: int) -> BitMap64:
        """Remove and return what is due."""
        due = BitMap64()
        limit = now_us // BUCKET_US
        while self._heap and self._heap[0] <= limit:
            due |= self._buckets.pop(heapq.heappop(self._heap))
        if due:
            self._stale -= due
            due &= self.members
            self.members -= due
        return due

    def next_us(self) -> int | None:
        """When something next comes due."""
        while self._heap:
            bucket = self._heap[0]
            if self._buckets[bucket].intersect(self.members):
                return bucket * BUCKET_US
            self._stale -= self._buckets.pop(heapq.heappop(self._heap))
        return None

    def items(self) -> list[tuple[int, BitMap64]]:
        """What waits, by moment, for a snapshot."""
        waiting = ((bucket * BUCKET_US, offsets & self.members) for bucket, offsets in sorted(self._buckets.items()))
        return [(due_us, offsets) for due_us, offsets in waiting if offsets]

    def clear(self) -> None:
        self._buckets.clear()
        self._heap.clear()
        self._stale.clear()
        self.members.clear()
