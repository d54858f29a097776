"""Segments, metadata and compaction without an engine around them: just enough to write, compact, reopen and read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from sealane.engine.contract import PartitionKey, Stored
from sealane.engine.local import record
from sealane.engine.local.compacted import open_journal, open_messages
from sealane.engine.local.compaction import CompactionResult, compact, remove_garbage
from sealane.engine.local.compaction_plan import Log, Plan, Source, make_plan, sources_of
from sealane.engine.local.files import Files
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES, SEALED
from sealane.engine.local.segment import HEADER_BYTES, SegmentHeader, scan, segment_name
from sealane.engine.local.trims import UNTRIMMED
from sealane.message import Batch, encode
from sealane.security.at_rest.keys import Keyring
from sealane.security.at_rest.sealing import Sealer

ORDERS = PartitionKey("default", "orders", 1, 0)
CARTS = PartitionKey("shop", "carts", 2, 3)


class SmallStore:
    """What the engine does around a compaction, one step at a time. Open it again on the same files to restart."""

    def __init__(self, files: Files, *, seed: int = 0) -> None:
        self.files = files
        self.entropy = random.Random(seed).randbytes
        self.time_us = 1_700_000_000_000_000
        self.metadata = Metadata(files.database("meta.db"), lambda: self.time_us)
        self.generations = itertools.count(self.metadata.boot() << 20)
        self.sealer = Sealer(Keyring.open(files, self.metadata, self.entropy), self.entropy)
        remove_garbage(files, self.metadata)
        files.make_directory("wal")
        self.segments: list[str] = []
        self.logs: dict[Log, list[Source]] = {}
        self.ends: dict[Log, int] = {}
        for name in files.list("wal"):
            self._scan(f"wal/{name}")
        for file in self.metadata.manifest():
            log = (file.partition, file.kind)
            self.ends[log] = max(self.ends.get(log, 0), file.stop)

    def close(self) -> None:
        self.metadata.close()

    def end(self, partition: PartitionKey, kind: int = MESSAGES) -> int:
        return self.ends.get((partition, kind), 0)

    def segment(self, *groups: Sequence[tuple[PartitionKey, list[Batch] | list[bytes]]], sealed: bool = True) -> str:
        """Write one closed segment; a group is a record, and its batches or journal entries follow what is there."""
        # A number of its own from metadata: names never repeat, not even over restarts.
        version = self.metadata.put("segments", b"", expected=self._segments_version())
        name = segment_name(version)
        file = self.files.open(name, create=True)
        header = SegmentHeader(record.FORMAT, self.entropy(8), 1, self.time_us)
        file.write_at(0, [header.encode()])
        position = HEADER_BYTES
        for sequence, group in enumerate(groups, 1):
            self.time_us += 1_000
            ends = dict(self.ends)
            entries = [self._entry(partition, items, sealed, ends) for partition, items in group]
            buffers, head = record.encode_record(sequence, header.nonce, self.time_us, entries)
            file.write_at(position, buffers)
            position += head.record_bytes
        file.sync()
        file.close()
        self.files.sync_directory("wal")
        self._scan(name)
        return name

    def plan(self) -> Plan:
        return make_plan(
            self.logs,
            ends={log: end for log, end in self.ends.items() if log in self.logs},
            segments=self.segments,
            manifest=self.metadata.manifest(),
            trims=self.metadata.trims(),
            dropped=self.metadata.dropped(),
            generation=next(self.generations),
        )

    def compact(self) -> CompactionResult:
        plan = self.plan()
        self.metadata.begin_compaction(plan.outputs)
        result = compact(self.files, plan, self.sealer, self.entropy)
        self.apply(plan, result)
        return result

    def apply(self, plan: Plan, result: CompactionResult) -> None:
        self.metadata.apply_compaction(result.added, plan.removed, plan.segments)
        self.logs.clear()
        self.segments.clear()
        remove_garbage(self.files, self.metadata)

    def messages(self, partition: PartitionKey) -> dict[int, tuple[object, ...]]:
        """Every readable message by its offset: all of its columns, and the subscription it is addressed to."""
        found: dict[int, tuple[object, ...]] = {}
        for stored in self.stored(partition):
            for row, offset in zip(stored.batch.records.to_pylist(), range(stored.base, stored.stop), strict=True):
                assert offset not in found
                found[offset] = (*map(repr, row.values()), stored.batch.meta.only, stored.batch.meta.given_ids)
        start = self.metadata.trims().get(partition, UNTRIMMED).messages_before
        return {offset: message for offset, message in found.items() if offset >= start}

    def stored(self, partition: PartitionKey) -> list[Stored]:
        return [
            stored
            for source in self._sources(partition, MESSAGES)
            for stored in open_messages(self._raw(source), partition=partition, sealer=self.sealer, **_place(source))
        ]

    def journal(self, partition: PartitionKey) -> dict[int, bytes]:
        start = self.metadata.trims().get(partition, UNTRIMMED).journal_before
        return {
            number: item
            for source in self._sources(partition, JOURNAL)
            for number, item in open_journal(
                self._raw(source), partition=partition, sealer=self.sealer, **_place(source)
            )
            if number >= start
        }

    def _sources(self, partition: PartitionKey, kind: int) -> list[Source]:
        if partition in self.metadata.dropped():
            return []
        files = [f for f in self.metadata.manifest() if (f.partition, f.kind) == (partition, kind)]
        return [source for file in files for source in sources_of(file)] + self.logs.get((partition, kind), [])

    def _raw(self, source: Source) -> bytes:
        file = self.files.open(source.file)
        raw = file.read_at(source.position, source.length)
        file.close()
        assert record.checksum(raw) == source.checksum
        return raw

    def _entry(self, partition: PartitionKey, items: list, sealed: bool, ends: dict[Log, int]):
        kind = JOURNAL if isinstance(items[0], bytes) else MESSAGES
        bodies = items if kind == JOURNAL else [encode(batch) for batch in items]
        count = len(items) if kind == JOURNAL else sum(map(len, items))
        base = ends.get((partition, kind), 0)
        ends[partition, kind] = base + count
        plain = bodies[0] if len(bodies) == 1 else record.pack(bodies)
        flags = MANY if len(bodies) > 1 else 0
        body: bytes | memoryview = plain
        if sealed:
            self.sealer.ensure(partition.domain)
            flags |= SEALED
            body = self.sealer.seal(partition.domain, plain, record.associated(partition, kind, base, count))
        self.ends = ends
        return record.describe(kind, partition, 1, base, count, body, flags=flags), body

    def _segments_version(self) -> int:
        value = self.metadata.get("segments")
        return 0 if value is None else value.version

    def _scan(self, name: str) -> None:
        file = self.files.open(name)
        data = file.read_at(0, file.size)
        file.close()
        self.segments.append(name)
        for found in scan(data, name).records:
            for entry in found.head.entries:
                log = (entry.partition, entry.kind)
                self.ends[log] = max(self.ends.get(log, 0), entry.stop)
                self.logs.setdefault(log, [])
            for entry, position in found.bodies():
                self.logs[entry.partition, entry.kind].append(
                    Source(
                        name,
                        position,
                        entry.body_bytes,
                        entry.base,
                        entry.count,
                        found.head.time_us,
                        entry.body_checksum,
                        entry.flags,
                    )
                )


def _place(source: Source) -> dict[str, int]:
    return {"base": source.base, "count": source.count, "flags": source.flags}
