"""Reads: recent batches from memory, older ones from disk; what fails its check is quarantined, the rest is served."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from sealane.engine.contract import Packed, PartitionKey, Span, Stored
from sealane.engine.local.index import Row
from sealane.engine.local.partition import PartitionLogs
from sealane.engine.local.reading import Sources, read_journal, read_messages, read_packed
from sealane.engine.local.record import JOURNAL, MESSAGES
from sealane.engine.local.recovery import Quarantined
from sealane.engine.local.runner import Runner
from sealane.errors import CorruptData
from sealane.log import get_log
from sealane.security.at_rest.keys import KeyDestroyed
from sealane.security.at_rest.sealing import Sealer

_log = get_log("sealane.engine")

R = TypeVar("R", bound=Stored | Packed | tuple[int, bytes])
B = TypeVar("B", Stored, Stored | Packed)

JOURNAL_READ_BYTES = 8 << 20
"""How much of a journal is read in one go off the loop."""


class _Fetched(NamedTuple, Generic[R]):
    found: list[R]
    last: Row
    """The last row that was read."""
    spent: int
    """What all of them unpack to, about."""


class Reads:
    """Answers reads, as the engine contract says."""

    def __init__(
        self,
        partitions: Mapping[PartitionKey, PartitionLogs],
        sources: Sources,
        sealer: Sealer,
        runner: Runner,
        quarantined: list[Quarantined],
    ) -> None:
        self._partitions = partitions
        self._sources = sources
        self._sealer = sealer
        self._runner = runner
        self.quarantined = quarantined

    async def messages(
        self, partition: PartitionKey, offset: int, bytes_max: int, stop: int | None = None
    ) -> list[Stored]:
        return await self._read(partition, offset, bytes_max, stop, read_messages)

    async def packed(
        self, partition: PartitionKey, offset: int, bytes_max: int, stop: int | None = None
    ) -> list[Stored | Packed]:
        """The same, and what is stored compressed stays so."""
        return await self._read(partition, offset, bytes_max, stop, read_packed)

    async def _read(
        self,
        partition: PartitionKey,
        offset: int,
        bytes_max: int,
        stop: int | None,
        read: Callable[[Sources, Sealer, PartitionKey, Row], list[B]],
    ) -> list[B | Stored]:
        result: list[B | Stored] = []
        spent = 0
        while (logs := self._partitions.get(partition)) is not None and (not result or spent < bytes_max):
            offset = max(offset, logs.messages.start)
            if stop is not None and offset >= stop:
                break
            recent = logs.tail.find(offset)
            if recent is not None:
                result.append(recent.since(logs.messages.start))
                spent += recent.batch.nbytes
                offset = recent.stop
                continue
            rows = _older_rows(logs, offset, bytes_max - spent, stop)
            if not rows:
                break
            fetched = await self._fetch(logs, MESSAGES, rows, read, bytes_max - spent)
            # Some of it, or all, may have been trimmed meanwhile.
            offset = max(offset, logs.messages.start)
            # The first may begin before what was asked for, but not with what was trimmed and is stored with it.
            whole_from = offset if result else logs.messages.start
            for stored in fetched.found:
                if stored.stop > offset and (stop is None or stored.base < stop):
                    result.append(stored if stored.base >= whole_from else _since(whole_from, stored))
                    whole_from = offset
            spent += fetched.spent
            offset = max(offset, fetched.last.stop)
        return result

    async def journal(
        self, partition: PartitionKey, offset: int, bytes_max: int | None = None
    ) -> list[tuple[int, bytes]]:
        result: list[tuple[int, bytes]] = []
        spent = 0
        while (logs := self._partitions.get(partition)) is not None and (bytes_max is None or spent < bytes_max):
            offset = max(offset, logs.journal.start)
            budget = JOURNAL_READ_BYTES if bytes_max is None else min(JOURNAL_READ_BYTES, bytes_max - spent)
            rows = _rows_from(logs, JOURNAL, offset, budget)
            if not rows:
                break
            fetched = await self._fetch(logs, JOURNAL, rows, read_journal, budget)
            result.extend(entry for entry in fetched.found if entry[0] >= offset)
            # What was damaged counts as well, so that this ends.
            spent += max(fetched.spent, 1)
            offset = fetched.last.stop
        return result

    async def _fetch(
        self,
        logs: PartitionLogs,
        kind: int,
        rows: list[Row],
        read: Callable[[Sources, Sealer, PartitionKey, Row], list[R]],
        bytes_max: int,
    ) -> _Fetched[R]:
        """What the rows hold, or the first of them, where they unpack to more than `bytes_max`.

        Those that turn out to be damaged are quarantined and left out. So are those whose key was destroyed, which is
        no damage: they are forgotten.
        """

        def work() -> tuple[_Fetched[R], list[tuple[Row, str]], list[Row]]:
            found: list[R] = []
            damaged: list[tuple[Row, str]] = []
            shredded: list[Row] = []
            spent = 0
            for row in rows:
                try:
                    items = read(self._sources, self._sealer, logs.key, row)
                    found.extend(items)
                    spent += max(row.length, sum(map(_unpacked_bytes, items)))
                except KeyDestroyed:
                    shredded.append(row)
                except CorruptData as error:
                    damaged.append((row, str(error)))
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    damaged.append((row, "the disk cannot read it"))
                if spent >= bytes_max:
                    break
            return _Fetched(found, row, spent), damaged, shredded

        self._sources.pin(rows)
        try:
            fetched, damaged, shredded = await self._runner.run(work)
            for row, reason in damaged:
                self._quarantine(logs, kind, row, reason)
            for row in shredded:
                logs.log(kind).remove(row.base, row.file)
            if shredded:
                _log.info("what was stored is unreadable, as its key was destroyed", partition=str(logs.key))
        finally:
            self._sources.unpin(rows)
        return fetched

    def _quarantine(self, logs: PartitionLogs, kind: int, row: Row, reason: str) -> None:
        if logs.log(kind).remove(row.base, row.file):
            name = self._sources.name(row.file)
            item = Quarantined(name, row.position, logs.key, kind, Span(row.base, row.stop), reason)
            self.quarantined.append(item)
            _log.error("damaged data", detail=str(item))


def _unpacked_bytes(item: Stored | Packed | tuple[int, bytes]) -> int:
    """What it takes in memory, about, and without looking into it where that can be."""
    if isinstance(item, Packed):
        return item.nbytes
    if isinstance(item, Stored):
        encoded = item.batch.encoded
        return item.batch.nbytes if encoded is None else int(encoded.size)
    return len(item[1])


def _since(offset: int, stored: Stored | Packed) -> Stored:
    """The batch without what was read before, or trimmed: compaction may have joined it with its neighbours."""
    return (stored.opened() if isinstance(stored, Packed) else stored).since(offset)


def _rows_from(logs: PartitionLogs, kind: int, offset: int, bytes_max: int) -> list[Row]:
    log = logs.log(kind)
    rows: list[Row] = []
    number = log.find(offset)
    while number < len(log) and bytes_max > 0:
        row = log.row(number)
        rows.append(row)
        bytes_max -= row.length
        number += 1
    return rows


def _older_rows(logs: PartitionLogs, offset: int, bytes_max: int, stop: int | None) -> list[Row]:
    """The rows from `offset` on that have to come from disk: up to the first that memory holds, or that is too far."""
    rows = _rows_from(logs, MESSAGES, offset, max(bytes_max, 1))
    for place, row in enumerate(rows):
        if stop is not None and row.base >= stop:
            return rows[:place]
        if place and logs.tail.find(row.base) is not None:
            return rows[:place]
    return rows
