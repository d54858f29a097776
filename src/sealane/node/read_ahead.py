"""Batches that were read together with one that was needed: whoever reads on needs them next."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict

from sealane.engine import PartitionKey, Stored

READ_AHEAD_BYTES = 1 << 20
"""How much is read at a time when memory does not hold it."""
RUNS_MAX = 32
"""Partitions whose last read is kept: bounds what a node holds for readers that lag."""


class ReadAhead:
    """The last run of batches read of each of the partitions read most recently."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: OrderedDict[PartitionKey, list[Stored]] = OrderedDict()

    def find(self, partition: PartitionKey, offset: int) -> Stored | None:
        run = self._runs.get(partition)
        if run is None:
            return None
        index = bisect_right(run, offset, key=lambda stored: stored.base) - 1
        if index < 0 or offset >= run[index].stop:
            return None
        return run[index]

    def keep(self, partition: PartitionKey, run: list[Stored]) -> None:
        self._runs[partition] = run
        self._runs.move_to_end(partition)
        if len(self._runs) > RUNS_MAX:
            self._runs.popitem(last=False)

    def forget(self, partition: PartitionKey) -> None:
        self._runs.pop(partition, None)
