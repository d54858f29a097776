"""What a broadcast consumer has settled, so that after a reconnection it goes on where it was.

Its place exists in the node only as long as its connection: the client is the one who remembers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyroaring import BitMap64

from sealane.delivery.settled import SettledSet
from sealane.node.deliveries import Delivery, Part, offsets_of


class BroadcastPlace:
    """By partition: everything below a floor is settled, and some above it."""

    def __init__(self) -> None:
        self._settled: dict[int, SettledSet] = {}

    def began(self, positions: Mapping[int, int]) -> None:
        """The node tells where this consumer begins."""
        for partition, offset in positions.items():
            known = self._settled.get(partition)
            # It began no later than asked, unless the log is not as long as that: then it is another one by now.
            if known is None or offset < known.floor:
                self._settled[partition] = SettledSet(offset)

    def start(self) -> dict[int, int]:
        """Where to begin again. A partition that is not there is one that was added: from its start."""
        return {partition: settled.floor for partition, settled in self._settled.items()}

    def settle(self, partition: int, offsets: BitMap64) -> None:
        self._settled.setdefault(partition, SettledSet()).add(offsets)

    def split(self, delivery: Delivery) -> tuple[tuple[Part, ...], BitMap64]:
        """The parts of a delivery that are new to this consumer, and the offsets of what it had settled before."""
        settled = self._settled.get(delivery.partition)
        known = BitMap64()
        if settled is None:
            return delivery.parts, known
        parts = []
        for part in delivery.parts:
            offsets = offsets_of(part)
            fresh = settled.without(offsets.min(), offsets.max() + 1) & offsets
            if len(fresh) == len(offsets):
                parts.append(part)
                continue
            known |= offsets - fresh
            if fresh:
                values = np.asarray(part.offsets, dtype=np.uint64)
                rows = np.flatnonzero(np.fromiter((int(offset) in fresh for offset in values), bool, len(values)))
                parts.append(Part(values[rows], part.batch.take(rows)))
        return tuple(parts), known
