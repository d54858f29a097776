"""Looking through what a backup has copied: how far each log reaches, and what was damaged in the source already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from sealane.engine.backup_report import PartitionOffsets
from sealane.engine.contract import PartitionKey
from sealane.engine.local import record
from sealane.engine.local.files import File, Files
from sealane.engine.local.index import SegmentIndex
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.record import JOURNAL, MESSAGES
from sealane.engine.local.segment import INDEX_SUFFIX, scan
from sealane.engine.local.trims import UNTRIMMED, Trim


@dataclass
class Checked:
    """What was found so far. Begins with what the metadata says."""

    trims: Mapping[PartitionKey, Trim]
    dropped: Set[PartitionKey]
    ends: dict[tuple[PartitionKey, int], int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    def mention(self, partition: PartitionKey, kind: int, end: int) -> None:
        self.ends[partition, kind] = max(end, self.ends.get((partition, kind), 0))

    def partitions(self) -> tuple[PartitionOffsets, ...]:
        keys = ({partition for partition, _ in self.ends} | set(self.trims)) - self.dropped
        found = []
        for key in sorted(keys):
            start, journal_start, _ = self.trims.get(key, UNTRIMMED)
            end = max(start, self.ends.get((key, MESSAGES), 0))
            journal_end = max(journal_start, self.ends.get((key, JOURNAL), 0))
            found.append(PartitionOffsets(*key, start, end, journal_start, journal_end))
        return tuple(found)


def check_segment(files: Files, name: str, checked: Checked, *, indexed: bool, newest: bool) -> None:
    """Check a copied segment, by its index where it has one: that tells which entries were sound. Blocking."""
    file = files.open(name)
    try:
        index = _index(files, name) if indexed else None
        if index is not None:
            for log, end in index.ends.items():
                checked.mention(*log, end)
            places = (
                (int(position), int(length), int(checksum))
                for _, _, columns in index.logs(0)
                for position, length, checksum in zip(columns[3], columns[4], columns[6], strict=True)
            )
            _note(checked, name, _unsound(file, places))
        else:
            _scan(file, name, checked, newest=newest)
    finally:
        file.close()


def check_compacted(files: Files, compacted: CompactedFile, checked: Checked) -> None:
    """Check a copied compacted file. Blocking."""
    checked.mention(compacted.partition, compacted.kind, compacted.stop)
    file = files.open(compacted.name)
    try:
        places = ((place.position, place.length, place.checksum) for place in compacted.places)
        _note(checked, compacted.name, _unsound(file, places))
    finally:
        file.close()


def _index(files: Files, name: str) -> SegmentIndex | None:
    file = files.open(name + INDEX_SUFFIX)
    try:
        return SegmentIndex.decode(file.read_at(0, file.size))
    finally:
        file.close()


def _scan(file: File, name: str, checked: Checked, *, newest: bool) -> None:
    found = scan(file.read_at(0, file.size), name)
    records = found.records
    if newest and records and records[-1].damaged:
        # A write that a crash cut short: nobody was promised it, and the next start cuts it off.
        records = records[:-1]
    for each in records:
        for entry in each.head.entries:
            checked.mention(entry.partition, entry.kind, entry.stop)
    lost = sum(len(each.damaged) for each in records) + len(found.gaps)
    if not newest and found.written_end > found.end:
        lost += 1
    _note(checked, name, lost)


def _unsound(file: File, places: Iterable[tuple[int, int, int]]) -> int:
    count = 0
    for position, length, checksum in places:
        data = file.read_at(position, length)
        count += len(data) != length or record.checksum(data) != checksum
    return count


def _note(checked: Checked, name: str, count: int) -> None:
    if count:
        checked.damaged.append(f"{name}: {count:,} entries were damaged before it was copied")
