"""A segment: one file of the write-ahead log. A header, then records one after another, then zeros."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from sealane.engine.local import record
from sealane.engine.local.record import Entry, Head
from sealane.errors import FormatTooNew

WAL_DIRECTORY = "wal"
SPARE_NAME = f"{WAL_DIRECTORY}/next.spare"
"""The segment that is being prepared; it gets its name when it is put to use."""
INDEX_SUFFIX = ".idx"
HEADER_BYTES = 64

_SUFFIX = ".wal"
_MAGIC = b"SEALWAL\0"
_HEADER = struct.Struct("<8sHHI8sQQ16x")
_CHECKSUM = struct.Struct("<Q")


class SegmentHeader(NamedTuple):
    """The first 64 bytes. Every version keeps this layout, so that a newer one is recognised as such."""

    version: int
    nonce: bytes
    first_sequence: int
    created_us: int

    def encode(self) -> bytes:
        fixed = _HEADER.pack(_MAGIC, self.version, 0, 0, self.nonce, self.first_sequence, self.created_us)
        return fixed + _CHECKSUM.pack(record.checksum(fixed))


def segment_name(first_sequence: int) -> str:
    return f"{WAL_DIRECTORY}/{first_sequence:020d}{_SUFFIX}"


def first_sequence_of(name: str) -> int | None:
    """The sequence that a segment's name tells, or None when it is no segment's name."""
    stem = name.removeprefix(f"{WAL_DIRECTORY}/").removesuffix(_SUFFIX)
    return int(stem) if name.endswith(_SUFFIX) and stem.isdigit() else None


def read_header(data: bytes | memoryview, name: str) -> SegmentHeader | None:
    """The header, or None when it is damaged or was never written. A newer format is refused by `FormatTooNew`."""
    if len(data) < HEADER_BYTES:
        return None
    fixed = memoryview(data)[: _HEADER.size]
    if _CHECKSUM.unpack_from(data, _HEADER.size)[0] != record.checksum(fixed):
        return None
    magic, version, _, _, nonce, first_sequence, created_us = _HEADER.unpack(fixed)
    if magic != _MAGIC:
        return None
    if version > record.FORMAT:
        raise FormatTooNew(name, version, record.FORMAT)
    return SegmentHeader(version, nonce, first_sequence, created_us)


class FoundRecord(NamedTuple):
    """A record that at least one sound copy of its head describes."""

    start: int
    head: Head
    head_sound: bool
    tail_sound: bool
    damaged: tuple[int, ...]
    """Which entries' bodies fail their check, by their place in the head."""

    @property
    def stop(self) -> int:
        return self.start + self.head.record_bytes

    def bodies(self) -> Iterator[tuple[Entry, int]]:
        """The sound entries, each with the position of its body in the file."""
        for number, (entry, position) in enumerate(self.head.bodies()):
            if number not in self.damaged:
                yield entry, self.start + position

    def lost(self) -> list[Entry]:
        return [self.head.entries[number] for number in self.damaged]


class Gap(NamedTuple):
    """Bytes between records that no copy of a head explains: whole records were damaged beyond naming."""

    start: int
    stop: int


class Scan(NamedTuple):
    """What a segment's bytes hold."""

    header: SegmentHeader | None
    records: list[FoundRecord]
    gaps: list[Gap]
    end: int
    """Where the last record found ends."""
    written_end: int
    """Where the last byte that is not zero ends: beyond `end`, it is what a torn write left."""


def scan(data: bytes, name: str) -> Scan:
    """Find every record, whatever is damaged around it. Decides nothing: torn or corrupt is for recovery to say."""
    header = read_header(data, name) or _guess_header(data, name)
    written_end = len(data.rstrip(b"\0"))
    if header is None:
        return Scan(None, [], [], min(HEADER_BYTES, len(data)), written_end)
    records: list[FoundRecord] = []
    gaps: list[Gap] = []
    position = HEADER_BYTES
    sequence = header.first_sequence
    while position < written_end:
        found = _record_at(data, position, header, sequence) or _next_record(data, position, header, sequence)
        if found is None:
            break
        if found.start > position:
            gaps.append(Gap(position, found.start))
        records.append(found)
        position = found.stop
        sequence = found.head.sequence + 1
    return Scan(header, records, gaps, position, written_end)


def _record_at(data: bytes, start: int, header: SegmentHeader, sequence: int) -> FoundRecord | None:
    head = record.read_head(data, start)
    if head is None or not _belongs(data, start, head, header, sequence):
        return None
    return _found(data, start, head, head_sound=True)


def _next_record(data: bytes, position: int, header: SegmentHeader, sequence: int) -> FoundRecord | None:
    """The first record after damage: by its head, or, where that is what was damaged, by its tail copy."""
    best: FoundRecord | None = None
    for tail in (False, True):
        mark = (
            record.tail_mark(header.version, header.nonce) if tail else record.head_mark(header.version, header.nonce)
        )
        at = data.find(mark, position)
        while at >= 0:
            head = record.read_head(data, at, tail=tail)
            if head is not None:
                start = record.record_start(at, head) if tail else at
                if start >= position and _belongs(data, start, head, header, sequence):
                    if best is None or start < best.start:
                        best = _found(data, start, head, head_sound=not tail)
                    break
            at = data.find(mark, at + 8)
    return best


def _belongs(data: bytes, start: int, head: Head, header: SegmentHeader, sequence: int) -> bool:
    return head.nonce == header.nonce and head.sequence >= sequence and start + head.record_bytes <= len(data)


def _found(data: bytes, start: int, head: Head, *, head_sound: bool) -> FoundRecord:
    view = memoryview(data)
    damaged = tuple(
        number
        for number, (entry, position) in enumerate(head.bodies())
        if record.checksum(view[start + position : start + position + entry.body_bytes]) != entry.body_checksum
    )
    return FoundRecord(start, head, head_sound, record.has_tail(data, start, head), damaged)


def _guess_header(data: bytes, name: str) -> SegmentHeader | None:
    """A damaged header costs nothing while any record is sound: each repeats the nonce, and the name tells the rest."""
    first_sequence = first_sequence_of(name)
    if first_sequence is None:
        return None
    for version in range(record.FORMAT, 0, -1):
        mark = record.any_head_mark(version)
        at = data.find(mark)
        while at >= 0:
            head = record.read_head(data, at)
            if head is not None and head.sequence >= first_sequence:
                return SegmentHeader(version, head.nonce, first_sequence, head.time_us)
            at = data.find(mark, at + 8)
    return None
