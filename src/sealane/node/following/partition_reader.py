"""Where a reader is in one partition: the next offset, and what it has passed over because it is delayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from sealane.delivery.due import DueSet
from sealane.delivery.filters import Filter
from sealane.delivery.offsets import from_array, runs, span
from sealane.message import Batch
from sealane.message.schema import DELIVER_AT, EXPIRES
from sealane.node.following.position import Place, Run, place_text
from sealane.node.owner import PartitionOwner

Offsets = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_NO_MOMENT = int(np.iinfo(np.int64).min)


class PartitionReader:
    """Reads nothing itself; it knows what is to be read."""

    __slots__ = ("delayed", "due", "lost", "next", "owner", "told")

    def __init__(self, owner: PartitionOwner, next_offset: int) -> None:
        self.owner = owner
        self.next = next_offset
        self.delayed = DueSet()
        """Passed over until a moment comes."""
        self.due = BitMap64()
        """Passed over, and to be read now."""
        self.lost: list[Run] = []
        """Passed over, and gone before the reader came back for it."""
        self.told: Callable[[], None] | None = None
        """What the owner calls when there may be more."""

    @classmethod
    def back(cls, owner: PartitionOwner, kept: Place | None) -> PartitionReader:
        """One that comes back to where it was. A partition that it does not know is new, and read from its start."""
        if kept is None:
            return cls(owner, owner.core.start)
        reader = cls(owner, min(kept.next, owner.core.end))
        for first, stop in kept.later:
            # It may say anything: only what the log can have is made into a set.
            reader.due |= span(max(first, owner.core.start), min(stop, reader.next))
            if first < owner.core.start:
                reader.lost.append((first, min(stop, owner.core.start)))
        return reader

    @property
    def partition(self) -> int:
        return self.owner.key.partition

    def later(self) -> list[Run]:
        """What was passed over."""
        return runs(self.delayed.members | self.due) if self.delayed or self.due else []

    def text(self, later: Sequence[Run] | None = None) -> str:
        """Its part of a position. `later` is what `later()` returns, for who has that at hand."""
        passed_over = [
            (first, min(stop, self.next))
            for first, stop in (self.later() if later is None else later)
            if first < self.next
        ]
        return place_text(self.partition, self.next, passed_over)

    def find_due(self) -> bool:
        """Whether something that was delayed is to be read now."""
        if self.delayed:
            self.due |= self.delayed.pop_due(self.owner.clock())
        return bool(self.due)

    def give(self, offsets: Sequence[int]) -> Iterator[str]:
        """The reader is given these messages: its part of the position after each of them."""
        later = self.later()
        for offset in offsets:
            self.next = max(self.next, offset + 1)
            self.due.discard(offset)
            later = _without(later, offset) if later else later
            yield self.text(later)

    def choose(self, rows: Batch, offsets: Offsets, matching: Filter | None) -> Mask:
        """Which of the rows are for the reader now. Those that are delayed are noted."""
        now_us = self.owner.clock()
        chosen = np.ones(len(rows), dtype=np.bool_)
        if matching is not None:
            chosen &= matching.matches(rows).to_numpy(zero_copy_only=False)
        if not rows.absent >> EXPIRES & 1:
            expires = _moments(rows, EXPIRES)
            chosen &= (expires == _NO_MOMENT) | (expires > now_us)
        if not rows.absent >> DELIVER_AT & 1:
            moments = _moments(rows, DELIVER_AT)
            late = chosen & (moments > now_us)
            for moment in np.unique(moments[late]).tolist():
                self.delayed.add(moment, from_array(offsets[late & (moments == moment)]))
            chosen &= ~late
        return chosen


def _without(later: Sequence[Run], offset: int) -> list[Run]:
    left: list[Run] = []
    for first, stop in later:
        if first <= offset < stop:
            left += [run for run in ((first, offset), (offset + 1, stop)) if run[0] < run[1]]
        else:
            left.append((first, stop))
    return left


def _moments(rows: Batch, place: int) -> npt.NDArray[np.int64]:
    """The column's times in µs; the least there is where a message has none."""
    column: pa.Array = rows.column(place).cast(pa.int64())
    moments: npt.NDArray[np.int64] = column.fill_null(_NO_MOMENT).to_numpy(zero_copy_only=False)
    return moments
