"""Messages that are out of attempts, on their way to the dead-letter topic."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pyroaring import BitMap64

from sealane.delivery.events import FailureCause


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Messages that are out of attempts for the same reason, after equally many attempts."""

    offsets: BitMap64
    cause: FailureCause
    reason: str | None


class Dying:
    """The dead, in groups, in the order in which they died. Burying them in that order costs O(1) a group."""

    __slots__ = ("_groups", "members")

    def __init__(self) -> None:
        self._groups: deque[DeadGroup] = deque()
        self.members = BitMap64()

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[DeadGroup]:
        return iter(self._groups)

    def __getitem__(self, index: int) -> DeadGroup:
        return self._groups[index]

    def add(self, group: DeadGroup) -> None:
        self._groups.append(group)
        self.members |= group.offsets

    def join_last(self, offsets: BitMap64) -> None:
        """These are of the last group too: a storm of equal failures is one group, not one a message."""
        last = self._groups[-1].offsets
        last |= offsets
        self.members |= offsets

    def bury(self, offsets: BitMap64) -> None:
        """These are no longer dying. Groups that hold none of them stay the objects that they were."""
        remaining = self.members & offsets
        self.members -= remaining
        at = 0
        while remaining:
            group = self._groups[at]
            if not group.offsets.intersect(remaining):
                at += 1
                continue
            left = group.offsets - remaining
            remaining -= group.offsets
            if left:
                self._groups[at] = DeadGroup(left, group.cause, group.reason)
                at += 1
            else:
                del self._groups[at]

    def clear(self) -> None:
        self._groups.clear()
        self.members.clear()
