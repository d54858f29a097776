"""The memory tail: recent batches, decoded, for consumers that keep up. Bounded in bytes over all partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from sealane.engine.contract import Stored

BATCH_OVERHEAD_BYTES = 4096
"""What a batch costs beside its data: nine columns of Arrow objects. It bounds a tail of single messages."""

_SLACK = 64
"""How many forgotten places a log's tail keeps at its front before it moves the rest: eviction stays O(1)."""


class LogTail:
    """One log's recent batches, in order of offset."""

    __slots__ = ("_bases", "_first", "_stored")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._stored: list[Stored | None] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._bases) - self._first

    def find(self, offset: int) -> Stored | None:
        """The batch that holds `offset`, if it is here."""
        number = bisect_right(self._bases, offset, lo=self._first) - 1
        if number < self._first:
            return None
        stored = self._stored[number]
        return stored if stored is not None and offset < stored.base + len(stored.batch) else None

    def append(self, stored: Stored) -> None:
        self._bases.append(stored.base)
        self._stored.append(stored)

    def forget_first(self) -> None:
        self._stored[self._first] = None
        self._first += 1
        if self._first >= _SLACK and self._first * 2 >= len(self._bases):
            del self._bases[: self._first]
            del self._stored[: self._first]
            self._first = 0

    def trim(self, before: int) -> None:
        """Let go of the batches wholly below `before`; their places are given back as they become the oldest."""
        for number in range(self._first, len(self._stored)):
            stored = self._stored[number]
            if stored is not None:
                if stored.base + len(stored.batch) > before:
                    return
                self._stored[number] = None


class Tail:
    """All logs' tails under one limit: the oldest batch of any of them goes first."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._order: deque[tuple[LogTail, int]] = deque()
        self.bytes_used = 0

    def add(self, log: LogTail, stored: Stored, data_bytes: int) -> None:
        cost = data_bytes + BATCH_OVERHEAD_BYTES
        log.append(stored)
        self._order.append((log, cost))
        self.bytes_used += cost
        while self.bytes_used > self._bytes_max:
            oldest, freed = self._order.popleft()
            oldest.forget_first()
            self.bytes_used -= freed
