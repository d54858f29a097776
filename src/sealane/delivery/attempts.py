"""How often each message has failed, as one bitmap a level: failing a run, however long, costs a few operations."""

from __future__ import annotations

from pyroaring import BitMap64


class Attempts:
    """Level k holds the offsets that have failed more than k times. Most messages are in none."""

    __slots__ = ("levels",)

    def __init__(self, levels: list[BitMap64] | None = None) -> None:
        self.levels = levels if levels is not None else []

    def failures(self, offset: int) -> int:
        count = 0
        for level in self.levels:
            if offset not in level:
                break
            count += 1
        return count

    def by_failures(self, offsets: BitMap64) -> list[tuple[int, BitMap64]]:
        """The offsets in groups that have failed equally often, fewest first."""
        groups = []
        rest = offsets
        for count, level in enumerate(self.levels):
            more = rest & level
            exactly = rest - more if more else rest
            if exactly:
                groups.append((count, exactly))
            rest = more
            if not rest:
                return groups
        if rest:
            groups.append((len(self.levels), rest))
        return groups

    def count_failure(self, offsets: BitMap64) -> None:
        carry = offsets
        for level in self.levels:
            already = carry & level
            level |= carry
            carry = already
            if not carry:
                return
        if carry:
            self.levels.append(carry.copy())

    def failed_at_least(self, count: int, offsets: BitMap64) -> BitMap64:
        return offsets & self.levels[count - 1] if 0 < count <= len(self.levels) else BitMap64()

    def forget(self, offsets: BitMap64) -> None:
        """Settled messages need no count."""
        if not self.levels:
            return
        for level in self.levels:
            level -= offsets
        while self.levels and not self.levels[-1]:
            self.levels.pop()
