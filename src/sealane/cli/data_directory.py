"""A data directory seen from outside: what its metadata, segments and compacted files say, at one moment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sealane.cli.readable_files import ReadableFile, ReadableFiles
from sealane.engine.contract import PartitionKey, Span
from sealane.engine.local import record
from sealane.engine.local.index import Row, SegmentIndex
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.record import JOURNAL, MESSAGES, SEALED
from sealane.engine.local.segment import INDEX_SUFFIX, WAL_DIRECTORY, Scan, first_sequence_of, scan
from sealane.errors import CorruptData, KeyUnavailable, StorageError
from sealane.security.at_rest.keys import Keyring
from sealane.security.at_rest.master_key import MASTER_KEY_FILE, check_value, parse_master_key, read_master_key
from sealane.security.at_rest.sealing import Sealer

METADATA_FILE = "meta.db"
_OPEN_FILES_MAX = 64
"""Files held open at once: enough to read along a few partitions, far from any limit of a shell."""
KIND_NAMES = {MESSAGES: "messages", JOURNAL: "journal"}


class Piece(NamedTuple):
    """One stored entry: where it is, and which offsets it holds."""

    file: str
    row: Row

    @property
    def format(self) -> str:
        """`wal`, `log` or `arrow`: what kind of file it is in."""
        return self.file.rpartition(".")[2]

    @property
    def sealed(self) -> bool:
        return bool(self.row.flags & SEALED)


@dataclass
class LogView:
    """One log of a partition, in order of offset."""

    start: int = 0
    end: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def lost(self) -> list[Span]:
        """Offsets between start and end that no file holds any more."""
        spans = []
        expected = self.start
        for piece in self.pieces:
            if piece.row.base > expected:
                spans.append(Span(expected, piece.row.base))
            expected = max(expected, piece.row.stop)
        if expected < self.end:
            spans.append(Span(expected, self.end))
        return spans


@dataclass
class PartitionView:
    key: PartitionKey
    messages: LogView = field(default_factory=LogView)
    journal: LogView = field(default_factory=LogView)

    def log(self, kind: int) -> LogView:
        return self.messages if kind == MESSAGES else self.journal


class DataDirectory:
    """What a data directory holds. Made by `look`, which takes a new view; files may change or go afterwards."""

    def __init__(self, files: ReadableFiles, metadata: Metadata) -> None:
        self.files = files
        self.metadata = metadata
        self.dropped = metadata.dropped()
        self.compacted = [file for file in metadata.manifest() if file.partition not in self.dropped]
        self.segments: list[str] = []
        self._open: dict[str, ReadableFile] = {}
        self.partitions: dict[PartitionKey, PartitionView] = {}

    @classmethod
    def look(cls, directory: Path) -> DataDirectory:
        """Take a view. `StorageError` when this is no data directory."""
        if not (directory / METADATA_FILE).is_file():
            what = (
                "does not exist" if not directory.exists() else f"is not a Sealane data directory (no {METADATA_FILE})"
            )
            raise StorageError(f"{str(directory)!r} {what}; name one with --data or SEALANE_DATA")
        files = ReadableFiles(directory)
        while True:
            # Listed first: a segment that is compacted in between is then known to the metadata as superseded, or gone.
            segments = _segments(files)
            try:
                view = cls(files, Metadata(files.copy_database(METADATA_FILE), lambda: 0))
            except sqlite3.Error as error:
                raise CorruptData(f"{directory / METADATA_FILE} cannot be read: {error}") from error
            try:
                view._fill(segments)
            except FileNotFoundError:
                # A running node has compacted that segment meanwhile: look again.
                view.close()
                continue
            return view

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()
        self.metadata.close()

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sealer(self) -> Sealer | None:
        """What opens sealed data, or None when the key is not here. `KeyUnavailable` when it is the wrong one."""
        where = f"{self.files.location}/{MASTER_KEY_FILE}"
        text = read_master_key(self.files, self.metadata.key_check())
        if text is None:
            return None
        master = parse_master_key(text, where)
        known = self.metadata.key_check()
        if known is not None and check_value(master) != known:
            raise KeyUnavailable(f"{where} is not the key that sealed the data here; put the right one back")
        return Sealer(Keyring(master, self.metadata, os.urandom), os.urandom)

    def scan(self, segment: str) -> Scan:
        """Every record of a segment, sound or not. `FileNotFoundError`: a running node has compacted it meanwhile."""
        file = self.file(segment)
        return scan(file.read_at(0, file.size), segment)

    def read(self, piece: Piece) -> bytes:
        """The stored bytes of an entry. `CorruptData` when they fail their check. `FileNotFoundError` as in `scan`."""
        raw = self.file(piece.file).read_at(piece.row.position, piece.row.length)
        if len(raw) != piece.row.length or record.checksum(raw) != piece.row.checksum:
            raise CorruptData("the checksum does not match")
        return raw

    def file(self, name: str) -> ReadableFile:
        """An open file, kept open until others need the descriptor more."""
        file = self._open.pop(name, None) or self.files.open(name)
        self._open[name] = file
        if len(self._open) > _OPEN_FILES_MAX:
            self._open.pop(next(iter(self._open))).close()
        return file

    def topics(self) -> dict[tuple[str, str], list[PartitionView]]:
        """Partitions by domain and topic; of a topic that was made anew, those of its newest incarnation."""
        newest: dict[tuple[str, str], int] = {}
        for key in self.partitions:
            name = key.domain, key.topic
            newest[name] = max(newest.get(name, 0), key.incarnation)
        found: dict[tuple[str, str], list[PartitionView]] = {}
        for key, view in sorted(self.partitions.items()):
            name = key.domain, key.topic
            if key.incarnation == newest[name]:
                found.setdefault(name, []).append(view)
        return found

    def _fill(self, segments: list[str]) -> None:
        trims = self.metadata.trims()
        garbage = set(self.metadata.garbage())
        for file in self.compacted:
            self._add(file.partition, file.kind, file.stop, _pieces(file))
        compacted_ends = {
            (key, kind): view.log(kind).end for key, view in self.partitions.items() for kind in KIND_NAMES
        }
        self.segments = [name for name in segments if name not in garbage]
        for name in self.segments:
            for partition, kind, end, pieces in self._indexed(name):
                if partition not in self.dropped:
                    reached = compacted_ends.get((partition, kind), 0)
                    self._add(partition, kind, end, [piece for piece in pieces if piece.row.base >= reached])
        for partition, (messages_before, journal_before, _) in trims.items():
            view = self.partitions.setdefault(partition, PartitionView(partition))
            _trim(view.messages, messages_before)
            _trim(view.journal, journal_before)

    def _add(self, partition: PartitionKey, kind: int, end: int, pieces: list[Piece]) -> None:
        log = self.partitions.setdefault(partition, PartitionView(partition)).log(kind)
        log.pieces.extend(pieces)
        log.end = max(log.end, end)

    def _indexed(self, segment: str) -> Iterator[tuple[PartitionKey, int, int, list[Piece]]]:
        """Every log of a segment, by the index beside it or, without one, by reading all of it."""
        index = self._saved_index(segment) or self._index_of(segment)
        rows = {(partition, kind): columns for partition, kind, columns in index.logs(0)}
        for (partition, kind), end in index.ends.items():
            columns = rows.get((partition, kind), ())
            yield partition, kind, end, [Piece(segment, Row(*map(int, each))) for each in zip(*columns, strict=True)]

    def _saved_index(self, segment: str) -> SegmentIndex | None:
        if not self.files.exists(segment + INDEX_SUFFIX):
            return None
        with self.files.open(segment + INDEX_SUFFIX) as file:
            return SegmentIndex.decode(file.read_at(0, file.size))

    def _index_of(self, segment: str) -> SegmentIndex:
        found = self.scan(segment)
        index = SegmentIndex(found.header.first_sequence if found.header is not None else 0)
        for each in found.records:
            if each.damaged and each is found.records[-1] and segment == self.segments[-1]:
                # The newest record of all is not whole: it is being written, or a crash cut it short.
                break
            for entry in each.head.entries:
                index.mention(entry.partition, entry.kind, entry.stop)
            for entry, position in each.bodies():
                index.add(entry.partition, entry.kind, Row.of(entry, 0, position, each.head.time_us))
        return index


def _segments(files: ReadableFiles) -> list[str]:
    names = [f"{WAL_DIRECTORY}/{name}" for name in files.list(WAL_DIRECTORY)]
    return [name for name in names if first_sequence_of(name) is not None]


def _pieces(file: CompactedFile) -> list[Piece]:
    return [
        Piece(file.name, Row(place.base, place.count, 0, place.position, place.length, *place[4:]))
        for place in file.places
    ]


def _trim(log: LogView, before: int) -> None:
    log.start = before
    log.end = max(log.end, before)
    log.pieces = [piece for piece in log.pieces if piece.row.stop > before]
