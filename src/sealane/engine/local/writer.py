"""From a group of commits to one record: encode, bundle by log, seal, write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sealane.engine.contract import Append, Stored
from sealane.engine.local import record
from sealane.engine.local.index import Row
from sealane.engine.local.partition import PartitionLogs
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES, SEALED, Bytes, Entry
from sealane.engine.local.scratch import Scratch
from sealane.engine.local.wal import Segment, Wal
from sealane.message import encoding
from sealane.prompt import Prompt
from sealane.security.at_rest.sealing import OVERHEAD_BYTES, Sealer

_ALONE_BYTES = 256 << 10
"""A batch of this length is an entry by itself: joining it with its neighbours would copy it once more, to spare them a
price that such a batch does not feel."""


class Pending:
    """One commit that waits: its appends, each with its partition, and whom to tell."""

    __slots__ = ("appends", "done", "logs", "size")

    def __init__(self, appends: Sequence[Append], logs: Sequence[PartitionLogs], size: int, done: Prompt[None]) -> None:
        self.appends = appends
        self.logs = logs
        self.size = size
        self.done = done


class Bundle:
    """What a group adds to one log: neighbours become one entry, so that they are sealed and checked at one price."""

    __slots__ = ("base", "batches", "count", "epoch", "items", "kind", "logs")

    def __init__(self, logs: PartitionLogs, kind: int, epoch: int, base: int) -> None:
        self.logs = logs
        self.kind = kind
        self.epoch = epoch
        self.base = base
        self.count = 0
        self.items: list[Bytes] = []
        self.batches: list[Stored] = []


class Landed(NamedTuple):
    """A group that is durable: each bundle with the row that finds it again."""

    segment: Segment | None
    bundles: list[tuple[Bundle, Row]]


class GroupWriter:
    """Writes groups. Blocking; one call at a time, on any thread."""

    def __init__(self, wal: Wal, sealer: Sealer) -> None:
        self._wal = wal
        self._sealer = sealer
        self._scratch = Scratch()

    def write(self, group: list[Pending]) -> Landed:
        try:
            return self._write(group)
        finally:
            self._scratch.clear()

    def _write(self, group: list[Pending]) -> Landed:
        bundles = _bundle(group)
        if not bundles:
            if self._wal.ending:
                self._wal.write([])
            return Landed(None, [])
        segment, time_us, places = self._wal.write([self._entry(bundle) for bundle in bundles])
        rows = [Row.of(entry, segment.number, position, time_us) for entry, position in places]
        return Landed(segment, list(zip(bundles, rows, strict=True)))

    def _entry(self, bundle: Bundle) -> tuple[Entry, Bytes]:
        partition = bundle.logs.key
        flags = 0
        body: Bytes
        if len(bundle.items) == 1:
            body = bundle.items[0]
        else:
            body = self._scratch.take(record.packed_bytes(bundle.items))
            record.pack_into(body, bundle.items)
            flags |= MANY
        if bundle.logs.sealed:
            place = record.associated(partition, bundle.kind, bundle.base, bundle.count)
            sealed = self._scratch.take(len(body) + OVERHEAD_BYTES)
            self._sealer.seal_into(sealed, partition.domain, body, place)
            body = sealed
            flags |= SEALED
        entry = record.describe(bundle.kind, partition, bundle.epoch, bundle.base, bundle.count, body, flags=flags)
        return entry, body


def _bundle(group: list[Pending]) -> list[Bundle]:
    bundles: list[Bundle] = []
    shared: dict[tuple[int, int, int], Bundle] = {}
    for pending in group:
        for append, logs in zip(pending.appends, pending.logs, strict=True):
            epoch, batch, journal = append.epoch, append.batch, append.journal
            if batch is not None and len(batch):
                key = (id(logs), MESSAGES, epoch)
                data = encoding(batch)
                if len(data) >= _ALONE_BYTES:
                    shared.pop(key, None)  # What follows cannot join what was before.
                bundle = shared.get(key)
                if bundle is None:
                    bundle = Bundle(logs, MESSAGES, epoch, append.batch_offset)
                    bundles.append(bundle)
                    if len(data) < _ALONE_BYTES:
                        shared[key] = bundle
                bundle.items.append(data)
                bundle.batches.append(Stored(append.batch_offset, batch))
                bundle.count += len(batch)
            if journal is not None:
                key = (id(logs), JOURNAL, epoch)
                bundle = shared.get(key)
                if bundle is None:
                    bundle = shared[key] = Bundle(logs, JOURNAL, epoch, append.journal_offset)
                    bundles.append(bundle)
                bundle.items.append(journal)
                bundle.count += 1
    return bundles
