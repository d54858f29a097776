"""How much journal a partition has: what a start folds, and what is kept before that as history."""

from __future__ import annotations

from collections.abc import Callable

from sealane.delivery.config import SECOND_US
from sealane.engine import Engine, Opened, PartitionKey

NEVER_US = 2**63 - 1
"""Later than anything that happens."""
SNAPSHOT_SHARE = 4
"""A snapshot is due once the journal after it is so many times as long: a large one is not written all the time."""


class Journal:
    def __init__(
        self, key: PartitionKey, engine: Engine, clock: Callable[[], int], *, retention_seconds: float
    ) -> None:
        self.retention_seconds = retention_seconds
        """Of the topic's messages: their history is kept as long."""
        self.end = 0
        """The entry that the next commit writes."""
        self.unfolded_bytes = 0
        """How much there is since the last snapshot: what a start folds."""
        self._key = key
        self._engine = engine
        self._clock = clock
        self._start = 0
        self._folded = 0
        """The last snapshot's entry."""
        self._snapshot_bytes = 0

    @property
    def stored(self) -> range:
        """The entries that are there, and durable: those before the last snapshot are history."""
        return range(self._start, self._engine.journal_at(self._key, NEVER_US))

    # --- growing ------------------------------------------------------------------------------------------------------

    def opened(self, found: Opened) -> None:
        self._start, self.end, self._folded = found.journal_start, found.journal_end, found.journal_folded
        self.unfolded_bytes = 0

    def grew(self, entry: bytes) -> None:
        self.end += 1
        self.unfolded_bytes += len(entry)

    def snapshot_is_due(self, journal_bytes: int) -> bool:
        return self.unfolded_bytes > max(journal_bytes, SNAPSHOT_SHARE * self._snapshot_bytes)

    def begin_anew(self, snapshot_bytes: int) -> tuple[int, int]:
        """From a snapshot on. Returns what `as_before` takes, if it cannot be written."""
        before = self.unfolded_bytes, self._snapshot_bytes
        self.unfolded_bytes, self._snapshot_bytes = 0, snapshot_bytes
        return before

    def as_before(self, before: tuple[int, int]) -> None:
        self.unfolded_bytes, self._snapshot_bytes = before

    def put_snapshot_off(self) -> None:
        """There was none to be had: the next one is tried after as much journal as now, many times over."""
        self._snapshot_bytes = self.unfolded_bytes

    # --- forgetting ---------------------------------------------------------------------------------------------------

    async def fold(self, entry: int) -> None:
        """A durable snapshot holds all that came before its entry."""
        self._folded = entry
        before = self._kept_from()
        await self._engine.trim(self._key, journal_before=before, journal_folded=entry)
        self._start = max(self._start, before)

    async def forget_history(self) -> None:
        """Let go of what is too old to be asked for."""
        before = self._kept_from()
        if before > self._start:
            await self._engine.trim(self._key, journal_before=before)
            self._start = before

    def _kept_from(self) -> int:
        """Before this entry is what nobody needs: it is folded, and older than the topic's messages may be."""
        horizon_us = self._clock() - round(self.retention_seconds * SECOND_US)
        return min(self._folded, self._engine.journal_at(self._key, horizon_us))
