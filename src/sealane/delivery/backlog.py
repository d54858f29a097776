"""What is ready to be granted, by priority. `KeyedBacklog` is the same for key-shared subscriptions."""

from __future__ import annotations

from typing import Protocol

from pyroaring import BitMap64

from sealane.delivery.offsets import take_first
from sealane.message import PRIORITY_DEFAULT


class Backlog(Protocol):
    """Ready offsets of one subscription. Live state: after a restart it is filled again by scanning the log."""

    def take(self, consumer: str, count: int) -> list[BitMap64]:
        """Remove up to `count` ready offsets for this consumer, best first: sets to be granted in that order."""
        ...

    def put_back(self, offsets: BitMap64) -> None:
        """These are ready (again)."""
        ...

    def park(self, offsets: BitMap64) -> None:
        """These are known and wait for a moment."""
        ...

    def forget(self, offsets: BitMap64) -> None:
        """These are settled."""
        ...

    def later_of_key(self, offsets: BitMap64) -> BitMap64:
        """Granted messages that must come back when these fail, to keep the order."""
        ...

    def has_ready(self, consumer: str) -> bool: ...

    def has_less_urgent(self) -> bool:
        """Whether something is ready that any message of the default priority goes before."""
        ...

    def ready_count(self) -> int: ...

    def clear(self) -> None: ...

    def check(self) -> BitMap64:
        """Assert that the bookkeeping agrees with itself, and return what is ready; used by tests and the simulator."""
        ...


class Priorities:
    """Which offsets have a priority other than the default, as scans have found them."""

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: dict[int, BitMap64] = {}

    def mark(self, priority: int, offsets: BitMap64) -> None:
        if priority != PRIORITY_DEFAULT and offsets:
            known = self._sets.setdefault(priority, BitMap64())
            known |= offsets

    def split(self, offsets: BitMap64) -> list[tuple[int, BitMap64]]:
        """The offsets by priority."""
        if not self._sets:
            return [(PRIORITY_DEFAULT, offsets)]
        groups = []
        rest = offsets
        for priority, known in self._sets.items():
            these = rest & known
            if these:
                groups.append((priority, these))
                rest = rest - these
        if rest:
            groups.append((PRIORITY_DEFAULT, rest))
        return groups

    def forget_below(self, floor: int) -> None:
        for priority, known in list(self._sets.items()):
            known.remove_range(0, floor)
            if not known:
                del self._sets[priority]


class PriorityBacklog:
    """Highest priority first, ties by offset: one bitmap a priority in use."""

    __slots__ = ("_priorities", "_ready")

    def __init__(self, priorities: Priorities) -> None:
        self._priorities = priorities
        self._ready: dict[int, BitMap64] = {}

    def take(self, consumer: str, count: int) -> list[BitMap64]:
        taken = []
        for priority in sorted(self._ready, reverse=True):
            if count <= 0:
                break
            ready = self._ready[priority]
            first = take_first(ready, count)
            count -= len(first)
            taken.append(first)
            if not ready:
                del self._ready[priority]
        return taken

    def put_back(self, offsets: BitMap64) -> None:
        if not offsets:
            return
        for priority, these in self._priorities.split(offsets):
            ready = self._ready.get(priority)
            if ready is None:
                self._ready[priority] = these.copy()
            else:
                ready |= these

    def park(self, offsets: BitMap64) -> None:
        """Parked messages are found again through their due set."""

    def forget(self, offsets: BitMap64) -> None:
        for priority, ready in list(self._ready.items()):
            if ready.intersect(offsets):
                ready -= offsets
                if not ready:
                    del self._ready[priority]

    def later_of_key(self, offsets: BitMap64) -> BitMap64:
        return BitMap64()

    def has_ready(self, consumer: str) -> bool:
        return bool(self._ready)

    def has_less_urgent(self) -> bool:
        return any(priority < PRIORITY_DEFAULT for priority in self._ready)

    def ready_count(self) -> int:
        return sum(map(len, self._ready.values()))

    def clear(self) -> None:
        self._ready.clear()

    def check(self) -> BitMap64:
        ready = BitMap64.union(BitMap64(), *self._ready.values())
        assert len(ready) == self.ready_count(), "an offset is ready under two priorities"
        return ready
