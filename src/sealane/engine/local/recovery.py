"""Recovery: what a write-ahead log holds after any end, clean or not.

Closed segments with a sound index are trusted as they are; the others are scanned. Of a record that is not whole:

- nothing sound comes after it: a torn write, which nobody was promised. It is cut.
- something sound comes after it: the next group was only written once this one was synced, so it was whole once.
  That is corruption: what is still sound is kept, the rest is quarantined and named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sealane.engine.contract import PartitionKey, Span
from sealane.engine.local import record
from sealane.engine.local.files import File, Files
from sealane.engine.local.index import Row, SegmentIndex
from sealane.engine.local.record import FORMAT, JOURNAL, Entry
from sealane.engine.local.segment import (
    HEADER_BYTES,
    INDEX_SUFFIX,
    WAL_DIRECTORY,
    FoundRecord,
    Gap,
    Scan,
    SegmentHeader,
    first_sequence_of,
    read_header,
    scan,
)
from sealane.engine.local.wal import Segment
from sealane.log import get_log

_log = get_log("sealane.engine")

_ZEROS = bytes(1 << 20)
_TRACE = b"\xff"
"""Of a write that came to nothing, behind a damaged record: that one was synced before."""


class Quarantined(NamedTuple):
    """One stored entry that fails its check, and what it held."""

    file: str
    position: int
    partition: PartitionKey
    kind: int
    span: Span
    reason: str

    def __str__(self) -> str:
        what = "journal entries" if self.kind == JOURNAL else "messages"
        return (
            f"{self.partition}: {what} {self.span.start}–{self.span.stop - 1} are lost: "
            f"{self.reason} at byte {self.position:,} of {self.file}"
        )


class Unexplained(NamedTuple):
    """Damaged bytes of a file that no longer tell what they held; gaps in the logs do."""

    file: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.file}: bytes {self.start:,}–{self.stop - 1:,} are damaged beyond telling what they held"


@dataclass
class RecoveryReport:
    """What opening the log found and did."""

    segments_trusted: int = 0
    segments_scanned: int = 0
    records: int = 0
    cut_bytes: int = 0
    """What a torn write had left at the end of the log."""
    repaired: int = 0
    """Damaged heads and tails that were restored from their copy: nothing was lost."""
    quarantined: list[Quarantined] = field(default_factory=list)
    unexplained: list[Unexplained] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Recovered:
    report: RecoveryReport
    closed: list[Segment] = field(default_factory=list)
    """Oldest first."""
    active: Segment | None = None
    """The newest segment, when more records may be appended to it."""
    next_sequence: int = 1
    last_time_us: int = 0


class _Scanned(NamedTuple):
    name: str
    size: int
    found: Scan


def recover(files: Files, clock: Callable[[], int], number: Callable[[], int], *, skip: set[str]) -> Recovered:
    """Read the log, mend what can be mended, and leave nothing behind that was never promised. Blocking.

    `skip` are segments that compaction has replaced but not yet removed.
    """
    started_us = clock()
    report = RecoveryReport()
    known: list[Segment | _Scanned] = []
    listed = [f"{WAL_DIRECTORY}/{name}" for name in files.list(WAL_DIRECTORY)]
    names = [name for name in listed if first_sequence_of(name) is not None and name not in skip]
    for name in names:
        trusted = _trusted(files, name, number) if name != names[-1] else None
        known.append(trusted or _scanned(files, name))
    recovered = Recovered(report)
    for place, segment in enumerate(known):
        if isinstance(segment, Segment):
            report.segments_trusted += 1
            settled: Segment | None = segment
        else:
            report.segments_scanned += 1
            later = any(_holds_records(other) for other in known[place + 1 :])
            settled = _settle(files, segment, later=later, report=report, number=number)
        if settled is not None:
            recovered.closed.append(settled)
            recovered.next_sequence = max(recovered.next_sequence, settled.index.last_sequence + 1)
            recovered.last_time_us = max(recovered.last_time_us, settled.index.time_us)
    _reopen_newest(files, recovered)
    report.seconds = (clock() - started_us) / 1e6
    _shout(report)
    return recovered


def _trusted(files: Files, name: str, number: Callable[[], int]) -> Segment | None:
    """The segment by its saved index alone, or None when it has to be scanned."""
    if not files.exists(name + INDEX_SUFFIX):
        return None
    with_index = files.open(name + INDEX_SUFFIX)
    try:
        index = SegmentIndex.decode(with_index.read_at(0, with_index.size))
    finally:
        with_index.close()
    file = files.open(name)
    try:
        header = read_header(file.read_at(0, HEADER_BYTES), name)
        size = file.size
    finally:
        file.close()
    if index is None or header is None or index.first_sequence != header.first_sequence:
        return None
    return Segment(number(), name, header, size, index, size, indexed=True)


def _scanned(files: Files, name: str) -> _Scanned:
    file = files.open(name)
    try:
        size = file.size
        return _Scanned(name, size, scan(file.read_at(0, size), name))
    finally:
        file.close()


def _holds_records(segment: Segment | _Scanned) -> bool:
    if isinstance(segment, Segment):
        return segment.index.last_sequence >= segment.index.first_sequence
    return bool(segment.found.records)


def _settle(
    files: Files, scanned: _Scanned, *, later: bool, report: RecoveryReport, number: Callable[[], int]
) -> Segment | None:
    """Decide torn or corrupt, mend the file accordingly, and index what is sound."""
    name, size, found = scanned
    records, gaps = list(found.records), list(found.gaps)
    end = found.end
    if later:
        if found.written_end > end:
            gaps.append(Gap(end, found.written_end))
    elif records and records[-1].damaged and found.written_end <= end:
        # Its head is sound and its bodies are not all: a write that the end of the process or machine cut short. With
        # bytes of another write behind it, it had been synced before that one began, and was damaged since.
        end = records.pop().start
    header = found.header
    if header is None or not (records or gaps):
        if not later:
            # Nothing was ever promised in this segment, not even its header.
            report.cut_bytes += found.written_end
            files.remove(name)
            files.sync_directory(WAL_DIRECTORY)
            return None
        header = header or SegmentHeader(FORMAT, bytes(record.NONCE_BYTES), first_sequence_of(name) or 0, 0)
    segment = Segment(number(), name, header, size, SegmentIndex(header.first_sequence), end)
    file = files.open(name)
    try:
        _mend(file, name, found.header, records, report)
        if not later and found.written_end > end:
            report.cut_bytes += found.written_end - end
            if records and records[-1].damaged:
                # The next record is written over it. Until then, whoever opens the log must come to the same verdict.
                file.write_at(end, [_TRACE])
                _zero(file, end + len(_TRACE), found.written_end)
            else:
                _zero(file, end, found.written_end)
        # What was written but not synced before a crash may be whole by luck: it must be durable before it is served.
        if records and not later:
            _write_again(file, records[-1])
        file.sync()
    finally:
        file.close()
    report.unexplained.extend(Unexplained(name, gap.start, gap.stop) for gap in gaps)
    for item in records:
        _index(segment, item, report)
    return segment


def _mend(
    file: File, name: str, header: SegmentHeader | None, records: list[FoundRecord], report: RecoveryReport
) -> None:
    if header is not None and read_header(file.read_at(0, HEADER_BYTES), name) is None:
        file.write_at(0, [header.encode()])
        report.repaired += 1
    for found in records:
        if found.head_sound and found.tail_sound:
            continue
        data = file.read_at(found.start, found.head.record_bytes)
        head, tail = record.head_copies(data, 0, found.head, from_tail=not found.head_sound)
        if not found.head_sound:
            file.write_at(found.start, [head])
        if not found.tail_sound:
            file.write_at(found.stop - len(tail), [tail])
        report.repaired += 1


def _write_again(file: File, last: FoundRecord) -> None:
    """The last record's sync may have failed: the page cache then still has it, and no sync would write it any more.

    Nothing follows a failed sync, so that it can only be the last one, with the header if it is the first as well.
    """
    start = 0 if last.start == HEADER_BYTES else last.start
    file.write_at(start, [file.read_at(start, last.stop - start)])


def _zero(file: File, start: int, stop: int) -> None:
    for position in range(start, stop, len(_ZEROS)):
        file.write_at(position, [memoryview(_ZEROS)[: stop - position]])


def _index(segment: Segment, found: FoundRecord, report: RecoveryReport) -> None:
    report.records += 1
    index = segment.index
    head = found.head
    index.last_sequence = head.sequence
    index.time_us = max(index.time_us, head.time_us)
    for number, (entry, position) in enumerate(head.bodies()):
        at = found.start + position
        if number in found.damaged:
            index.mention(entry.partition, entry.kind, entry.stop)
            report.quarantined.append(_quarantined(segment.name, at, entry))
        else:
            index.add(entry.partition, entry.kind, Row.of(entry, segment.number, at, head.time_us))


def _quarantined(name: str, position: int, entry: Entry) -> Quarantined:
    return Quarantined(
        name, position, entry.partition, entry.kind, Span(entry.base, entry.stop), "the checksum does not match"
    )


def _reopen_newest(files: Files, recovered: Recovered) -> None:
    """Append to the newest segment where that is possible: an older format is left as it is, and a new one begun."""
    if not recovered.closed:
        return
    newest = recovered.closed[-1]
    if newest.header.version == FORMAT and newest.header.nonce != bytes(record.NONCE_BYTES):
        recovered.active = recovered.closed.pop()
        recovered.active.indexed = False
        if files.exists(newest.name + INDEX_SUFFIX):
            # It would soon tell less than the segment holds, and would be believed.
            files.remove(newest.name + INDEX_SUFFIX)
            files.sync_directory(WAL_DIRECTORY)


def _shout(report: RecoveryReport) -> None:
    if report.cut_bytes:
        _log.warning("a torn write at the end of the log was cut: nobody was promised it", bytes=report.cut_bytes)
    if report.repaired:
        _log.warning("damaged record heads were restored from their copies; check the disk", count=report.repaired)
    for item in (*report.quarantined, *report.unexplained):
        _log.error("damaged data", detail=str(item))
