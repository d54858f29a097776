"""The settled set of a subscription: everything below a floor, and a bitmap of what is settled above it."""

from __future__ import annotations

from pyroaring import BitMap64

from sealane.delivery.offsets import span


class SettledSet:
    """Grows with the gaps, not with the messages: ten million settled in order are one integer."""

    __slots__ = ("above", "floor")

    def __init__(self, floor: int = 0, above: BitMap64 | None = None) -> None:
        self.floor = floor
        self.above = above if above is not None else BitMap64()

    def __contains__(self, offset: int) -> bool:
        return offset < self.floor or offset in self.above

    def add(self, offsets: BitMap64) -> None:
        """Settle a set of offsets."""
        if not offsets:
            return
        low = offsets.min()
        stop = offsets.max() + 1
        if low <= self.floor and stop - low == len(offsets):
            self._raise_floor(stop)
            return
        self.above |= offsets
        if self.floor in self.above or low < self.floor:
            self._absorb()

    def without(self, start: int, stop: int) -> BitMap64:
        """The offsets of [start, stop) that are not settled."""
        remaining = span(max(start, self.floor), stop)
        if self.above:
            remaining -= self.above
        return remaining

    def unsettled_count(self, end: int) -> int:
        """How many of the offsets below `end` are not settled."""
        return max(end - self.floor, 0) - len(self.above)

    def _raise_floor(self, stop: int) -> None:
        if stop <= self.floor:
            return
        self.floor = stop
        self._absorb()

    def _absorb(self) -> None:
        """Move the floor over what is settled right above it."""
        above = self.above
        if not above:
            return
        if self.floor in above:
            self.floor = _run_stop(above, self.floor)
        above.remove_range(0, self.floor)


def _run_stop(offsets: BitMap64, start: int) -> int:
    """The end of the run that starts at `start`: galloping, then bisection, on counts that Roaring gives quickly."""
    step = 1
    while offsets.range_cardinality(start, start + step) == step:
        step *= 2
    low, high = start + step // 2, start + step
    while high - low > 1:
        middle = (low + high) // 2
        if offsets.range_cardinality(start, middle) == middle - start:
            low = middle
        else:
            high = middle
    return low
