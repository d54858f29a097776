"""Messages that are being handed out one by one. Each is claimed once, by whoever hands it out, or taken back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from pyroaring import BitMap64

from sealane.node import Delivery, Part


class Opened:
    """`rows.popleft()` claims the next message; an empty `rows` means that all are claimed or were taken back.

    A claim may come from any thread, since taking from a deque is one step: a message is either the claimer's or, by
    `withdraw`, which runs on the event loop's thread alone, nobody's. While `withdraw` looks through the rows there
    are none to claim; a claimer that finds none must ask on the event loop before it believes it.
    """

    __slots__ = ("delivery", "part", "problems", "rows", "until")

    def __init__(self, delivery: Delivery, part: Part, until: float) -> None:
        self.delivery = delivery
        self.part = part
        self.until = until
        self.problems: Mapping[int, str] | None = None
        """By row: why its payload could not be opened, if there are such."""
        self.rows = deque(range(len(part.batch)))

    def is_of(self, partition: int, lease: int) -> bool:
        return self.delivery.lease == lease and self.delivery.partition == partition

    def withdraw(self, offsets: BitMap64 | None = None) -> BitMap64:
        """Take back these, or all, if they are not claimed yet; returns which."""
        withdrawn, kept = BitMap64(), []
        for row in self._take_rows():
            offset = int(self.part.offsets[row])
            if offsets is None or offset in offsets:
                withdrawn.add(offset)
            else:
                kept.append(row)
        self.rows.extend(kept)
        return withdrawn

    def _take_rows(self) -> list[int]:
        taken = []
        while True:
            try:
                taken.append(self.rows.popleft())
            except IndexError:
                return taken
