"""What a compaction is to do, decided without touching a file.

Closed segments of the write-ahead log become one file a partition and kind. Small older files of the same log are taken
into the new one, so that no log is spread over many small files; large ones are never written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from sealane.engine.contract import PartitionKey
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.record import JOURNAL, MESSAGES, SEALED
from sealane.engine.local.trims import UNTRIMMED, Trim

SMALL_FILE_BYTES = 16 << 20
"""Files below this are merged into newer ones. A read of a whole log then opens one file for each 16 MiB at least."""

MERGE_RATIO = 4
"""A small file is merged only into new data of at least a quarter of its size.

With a thousand partitions each compaction brings a little to each; rewriting megabytes for kilobytes every time would
wear the disk out. This way a log keeps a handful of small files, and a message is rewritten a few times at most.
"""

TINY_FILE_BYTES = 64 << 10
"""Files below this are merged whatever the new data brings: rewriting one costs no more than opening it."""

FILE_BYTES_MAX = 256 << 20
"""A new file takes no more input than this, so that retention, which removes whole files, gives space back in time."""

KIND_NAMES = {MESSAGES: "messages", JOURNAL: "journal"}

Log = tuple[PartitionKey, int]
"""One of a partition's two logs: the partition and the kind of record."""


class Source(NamedTuple):
    """The body of one stored entry, to be compacted."""

    file: str
    position: int
    length: int
    base: int
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody calls
    time_us: int
    checksum: int
    flags: int

    @property
    def stop(self) -> int:
        return self.base + self.count


@dataclass(frozen=True, slots=True)
class Job:
    """One file to write."""

    name: str
    partition: PartitionKey
    kind: int
    sealed: bool
    generation: int
    base: int
    stop: int
    """The file stands for the offsets [base, stop); what is below `base` was trimmed, and is left out."""
    sources: tuple[Source, ...] = field(repr=False)

    @property
    def draft(self) -> str:
        """What the file is called until it is complete."""
        return self.name + ".draft"


@dataclass(frozen=True, slots=True)
class Plan:
    jobs: tuple[Job, ...]
    removed: tuple[str, ...]
    """Compacted files that are superseded once the plan is carried out."""
    segments: tuple[str, ...]
    """Segments that are superseded likewise."""

    @property
    def outputs(self) -> list[str]:
        """Every name that carrying it out may create."""
        return [name for job in self.jobs for name in (job.name, job.draft)]


def make_plan(
    logs: Mapping[Log, Sequence[Source]],
    *,
    ends: Mapping[Log, int],
    segments: Iterable[str],
    manifest: Iterable[CompactedFile],
    trims: Mapping[PartitionKey, Trim],
    dropped: Set[PartitionKey],
    generation: int,
) -> Plan:
    """Plan the compaction of `segments`, of which `logs` lists every sound entry, by log and ascending in offsets.

    `ends` has every log that the segments mention, with the offset after its last entry, be that entry sound or lost:
    the offsets of a lost entry must not be given out again once its segment is gone.
    `generation` must be new each time, also after a crash: names of an abandoned compaction are never used again.
    """
    older: dict[Log, list[CompactedFile]] = {}
    removed: list[str] = []
    for file in manifest:
        if file.partition in dropped or file.stop <= _trim(trims, file.partition, file.kind):
            removed.append(file.name)
        else:
            older.setdefault((file.partition, file.kind), []).append(file)
    jobs: list[Job] = []
    for (partition, kind), stop in sorted(ends.items()):
        keep_from = _trim(trims, partition, kind)
        if partition in dropped or stop <= keep_from:
            continue
        fresh = [source for source in logs.get((partition, kind), ()) if source.stop > keep_from]
        sealed = any(source.flags & SEALED for source in fresh)
        merged = _small_neighbours(older.get((partition, kind), ()), sum(s.length for s in fresh), sealed)
        removed += [file.name for file in merged]
        sources = [source for file in merged for source in sources_of(file) if source.stop > keep_from] + fresh
        for start, part in _split(sources, FILE_BYTES_MAX):
            base = max(part[0].base, keep_from) if part else stop
            part_stop = sources[start + len(part)].base if start + len(part) < len(sources) else stop
            jobs.append(_job(partition, kind, sealed, generation, base, part_stop, part))
    return Plan(tuple(jobs), tuple(removed), tuple(segments))


def make_rewrite(files: Iterable[CompactedFile], trims: Mapping[PartitionKey, Trim], *, generation: int) -> Plan:
    """Plan to write these compacted files once more, each by itself: the same offsets, sealed by the newest keys."""
    jobs: list[Job] = []
    removed: list[str] = []
    for file in files:
        removed.append(file.name)
        keep_from = _trim(trims, file.partition, file.kind)
        if file.stop > keep_from:
            sources = [source for source in sources_of(file) if source.stop > keep_from]
            base = max(file.base, keep_from)
            jobs.append(_job(file.partition, file.kind, file.sealed, generation, base, file.stop, sources))
    return Plan(tuple(jobs), tuple(removed), ())


def expired(
    manifest: Iterable[CompactedFile], trims: Mapping[PartitionKey, Trim], dropped: Set[PartitionKey]
) -> list[str]:
    """Compacted files of which nothing is needed any more: retention removes them whole."""
    return [
        file.name
        for file in manifest
        if file.partition in dropped or file.stop <= _trim(trims, file.partition, file.kind)
    ]


def sources_of(file: CompactedFile) -> list[Source]:
    """What a compacted file holds, as input to the next compaction."""
    return [
        Source(file.name, position, length, base, count, time_us, checksum, flags)
        for base, count, position, length, time_us, checksum, flags in file.places
    ]


def _trim(trims: Mapping[PartitionKey, Trim], partition: PartitionKey, kind: int) -> int:
    trim = trims.get(partition, UNTRIMMED)
    return trim.messages_before if kind == MESSAGES else trim.journal_before


def _small_neighbours(older: Sequence[CompactedFile], fresh_bytes: int, sealed: bool) -> list[CompactedFile]:
    """The newest older files that are worth taking in, oldest first."""
    gathered = fresh_bytes
    taken: list[CompactedFile] = []
    for file in sorted(older, key=lambda file: file.base, reverse=True):
        worth_it = min(SMALL_FILE_BYTES, max(TINY_FILE_BYTES, MERGE_RATIO * gathered))
        # A topic that changed its mind about sealing keeps its older files as they are.
        if file.sealed != sealed or file.file_bytes >= worth_it:
            break
        gathered += file.file_bytes
        taken.append(file)
    return taken[::-1]


def _split(sources: Sequence[Source], bytes_max: int) -> Iterable[tuple[int, Sequence[Source]]]:
    """Runs of at most `bytes_max`, each with the place of its first source; one empty run when there is nothing."""
    start = gathered = 0
    for place, source in enumerate(sources):
        if gathered and gathered + source.length > bytes_max:
            yield start, sources[start:place]
            start, gathered = place, 0
        gathered += source.length
    yield start, sources[start:]


def _job(
    partition: PartitionKey, kind: int, sealed: bool, generation: int, base: int, stop: int, sources: Sequence[Source]
) -> Job:
    suffix = "arrow" if kind == MESSAGES and not sealed else "log"
    name = (
        f"compacted/{partition.domain}/{partition.topic}#{partition.incarnation}/"
        f"{partition.partition}.{KIND_NAMES[kind]}.{base:020d}.{generation}.{suffix}"
    )
    return Job(name, partition, kind, sealed, generation, base, stop, tuple(sources))
