"""Carrying out a compaction: read the sources, merge small batches into large ones, write new files.

Nothing that exists is changed. The engine puts the result in force by one metadata transaction and then removes what it
replaces, so that a crash at any point leaves either the old files or the new ones, complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sealane.engine.contract import PartitionKey, Stored
from sealane.engine.local import record
from sealane.engine.local.compacted import open_journal, open_messages
from sealane.engine.local.compacted_writer import Writer, open_writer
from sealane.engine.local.compaction_plan import Job, Plan, Source
from sealane.engine.local.files import File, Files
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.record import MESSAGES
from sealane.errors import CorruptData
from sealane.message import Batch, BatchMeta
from sealane.security.at_rest.keys import KeyDestroyed
from sealane.security.at_rest.sealing import Sealer

BATCH_BYTES = 1 << 20
"""Small batches are joined up to this: large enough to compress well, small enough to read one message cheaply."""
BATCH_MESSAGES = 8_192
"""… and up to this many messages."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A stored entry that could not be read (damaged, or its key was destroyed): its offsets are lost."""

    file: str
    position: int
    partition: PartitionKey
    kind: int
    base: int
    count: int
    problem: str


@dataclass(frozen=True, slots=True)
class CompactionResult:
    added: tuple[CompactedFile, ...]
    bytes_in: int
    bytes_out: int
    skipped: tuple[Skipped, ...]


class Throttle(Protocol):
    def spend(self, count: int) -> None:
        """Account for this many bytes read or written; waits when that was too fast."""
        ...


class Unthrottled:
    def spend(self, count: int) -> None:
        """Never waits."""


def compact(
    files: Files,
    plan: Plan,
    sealer: Sealer | None,
    entropy: Callable[[int], bytes],
    throttle: Throttle | None = None,
) -> CompactionResult:
    """Write every file of the plan. On return they are complete, durable, and under their names; nothing uses them yet.

    Entries that fail their check, or whose key was destroyed, are left out and reported. An OSError ends it; what was
    written until then is named in `plan.outputs` and may be removed.
    """
    run = _Run(files, sealer, entropy, throttle or Unthrottled())
    try:
        added = tuple(run.carry_out(job) for job in plan.jobs)
    finally:
        run.close()
    return CompactionResult(added, run.bytes_in, run.bytes_out, tuple(run.skipped))


def remove_garbage(files: Files, metadata: Metadata, *, keep: Set[str] = frozenset()) -> list[str]:
    """Delete superseded files and those of abandoned compactions; returns their names. Safe to repeat after a crash.

    Those in `keep` (someone still reads them) stay garbage, for the next time.
    """
    names = [name for name in metadata.garbage() if name not in keep]
    for name in names:
        if files.exists(name):
            files.remove(name)
    _forget(files, metadata, names)
    return names


def forget_removed(files: Files, metadata: Metadata) -> list[str]:
    """Forget the garbage that is no longer there, whoever removed it; returns the names. The rest stays garbage."""
    names = [name for name in metadata.garbage() if not files.exists(name)]
    _forget(files, metadata, names)
    return names


def _forget(files: Files, metadata: Metadata, names: Sequence[str]) -> None:
    # A removal that is not yet durable, whoever did it, can be undone by a power loss. Forgetting the name before that
    # would bring a replaced segment back as if it were in force, beside what replaced it.
    for directory in sorted({name.rpartition("/")[0] for name in names}):
        if files.exists(directory):
            files.sync_directory(directory)
    if names:
        metadata.forget_garbage(names)


class _Run:
    """One compaction under way."""

    def __init__(
        self, files: Files, sealer: Sealer | None, entropy: Callable[[int], bytes], throttle: Throttle
    ) -> None:
        self._files = files
        self._sealer = sealer
        self._entropy = entropy
        self._throttle = throttle
        self._open: dict[str, File] = {}
        self.bytes_in = 0
        self.bytes_out = 0
        self.skipped: list[Skipped] = []

    def carry_out(self, job: Job) -> CompactedFile:
        writer = open_writer(self._files, job, self._sealer, self._entropy)
        try:
            if job.kind == MESSAGES:
                self._messages(job, writer)
            else:
                self._journal(job, writer)
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _messages(self, job: Job, writer: Writer) -> None:
        group = _Group()
        for source in job.sources:
            for stored in self._read_messages(job, source):
                stored = _without_trimmed(stored, job.base)
                if not len(stored.batch):
                    continue
                if not group.accepts(stored):
                    self._wrote(group.write(writer))
                group.add(stored, source.time_us)
        self._wrote(group.write(writer))

    def _journal(self, job: Job, writer: Writer) -> None:
        items: list[bytes] = []
        base = size = time_us = 0
        for source in job.sources:
            for number, item in self._read_journal(job, source):
                if number < job.base:
                    continue
                full = size + len(item) > BATCH_BYTES or len(items) >= BATCH_MESSAGES
                if items and (full or number != base + len(items)):
                    self._wrote(writer.journal(base, items, time_us))
                    items, size = [], 0
                if not items:
                    base = number
                items.append(item)
                size += len(item)
                time_us = source.time_us
        if items:
            self._wrote(writer.journal(base, items, time_us))

    def _read_messages(self, job: Job, source: Source) -> list[Stored]:
        try:
            return open_messages(
                self._read(source),
                partition=job.partition,
                base=source.base,
                count=source.count,
                flags=source.flags,
                sealer=self._sealer,
            )
        except (CorruptData, KeyDestroyed) as error:
            self._skip(job, source, error)
            return []

    def _read_journal(self, job: Job, source: Source) -> list[tuple[int, bytes]]:
        try:
            return open_journal(
                self._read(source),
                partition=job.partition,
                base=source.base,
                count=source.count,
                flags=source.flags,
                sealer=self._sealer,
            )
        except (CorruptData, KeyDestroyed) as error:
            self._skip(job, source, error)
            return []

    def _read(self, source: Source) -> bytes:
        file = self._open.get(source.file)
        if file is None:
            file = self._open[source.file] = self._files.open(source.file)
        raw = file.read_at(source.position, source.length)
        self.bytes_in += len(raw)
        self._throttle.spend(len(raw))
        if len(raw) != source.length or record.checksum(raw) != source.checksum:
            raise CorruptData("its checksum does not match")
        return raw

    def _skip(self, job: Job, source: Source, error: Exception) -> None:
        self.skipped.append(
            Skipped(source.file, source.position, job.partition, job.kind, source.base, source.count, str(error))
        )

    def _wrote(self, count: int) -> None:
        self.bytes_out += count
        self._throttle.spend(count)


class _Group:
    """Neighbouring batches that become one."""

    def __init__(self) -> None:
        self._stored: list[Stored] = []
        self._messages = 0
        self._bytes = 0
        self._time_us = 0

    def accepts(self, stored: Stored) -> bool:
        if not self._stored:
            return True
        last = self._stored[-1]
        return (
            stored.base == last.stop
            and _kept_meta(stored.batch.meta) == _kept_meta(last.batch.meta)
            and self._messages + len(stored.batch) <= BATCH_MESSAGES
            and self._bytes + stored.batch.nbytes <= BATCH_BYTES
        )

    def add(self, stored: Stored, time_us: int) -> None:
        self._stored.append(stored)
        self._messages += len(stored.batch)
        self._bytes += stored.batch.nbytes
        self._time_us = time_us

    def write(self, writer: Writer) -> int:
        if not self._stored:
            return 0
        written = writer.messages(self._stored[0].base, _joined(self._stored), self._time_us)
        self._stored, self._messages, self._bytes = [], 0, 0
        return written


def _kept_meta(meta: BatchMeta) -> tuple[object, ...]:
    """What readers need of a batch's metadata. The rest has served its purpose once the batch was committed."""
    return meta.only, meta.given_ids, meta.schema_id


def _joined(stored: Iterable[Stored]) -> Batch:
    batches = [each.batch for each in stored]
    if len(batches) == 1:
        return batches[0]
    first = batches[0].meta
    producers = {batch.meta.producer for batch in batches}
    meta = BatchMeta(
        given_ids=first.given_ids,
        schema_id=first.schema_id,
        only=first.only,
        producer=first.producer if len(producers) == 1 else None,
    )
    (records,) = pa.Table.from_batches([batch.records for batch in batches]).combine_chunks().to_batches()
    return Batch(records, meta)


def _without_trimmed(stored: Stored, base: int) -> Stored:
    if stored.base >= base:
        return stored
    return Stored(
        min(base, stored.stop), stored.batch.slice(min(base - stored.base, len(stored.batch)), len(stored.batch))
    )
