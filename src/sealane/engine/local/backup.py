"""A backup: what a crash at one moment would have left, copied to another place and made durable there.

The moment is chosen under the metadata's lock, so that trims, keys, drops and compactions stand still while the end of
the log is read: every record before that end has its key in the copied metadata, and nothing is trimmed that the copied
log does not reach. From then on only files are read that no longer change, and the active segment up to that end.

A backup is laid out as a data directory is, with `backup.json` beside: what reads the one reads the other.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from sealane.engine.backup_report import BackupReport, PartitionOffsets, Progress
from sealane.engine.contract import PartitionKey
from sealane.engine.local.backup_check import Checked, check_compacted, check_segment
from sealane.engine.local.backup_draft import Draft, OpenFiles
from sealane.engine.local.backup_manifest import MANIFEST_NAME, CopiedFile, encode_manifest, make_manifest
from sealane.engine.local.copying import copy_file, write_whole
from sealane.engine.local.files import DiskFiles, Files
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import METADATA_NAME, Metadata
from sealane.engine.local.segment import INDEX_SUFFIX, WAL_DIRECTORY, first_sequence_of
from sealane.engine.local.trims import Trim
from sealane.engine.local.wal import Wal
from sealane.errors import CorruptData, KeyUnavailable, StorageError
from sealane.security.at_rest.master_key import MASTER_KEY_FILE, check_value, parse_master_key, read_master_key


class Piece(NamedTuple):
    """A file of the write-ahead log that belongs to the backup."""

    name: str
    length: int
    index_bytes: int
    """How long its index is, which is copied too; 0: it has none."""


class Cut(NamedTuple):
    """One moment of a data directory."""

    taken_us: int
    metadata: bytes
    """The database, as a file of its own."""
    segments: tuple[Piece, ...]
    """Oldest first."""
    compacted: tuple[CompactedFile, ...]
    trims: dict[PartitionKey, Trim]
    dropped: set[PartitionKey]
    key_check: bytes | None

    @property
    def names(self) -> list[str]:
        """The files that must stay until they are copied."""
        return [piece.name for piece in self.segments] + [file.name for file in self.compacted]

    @property
    def bytes(self) -> int:
        return (
            len(self.metadata)
            + sum(piece.length + piece.index_bytes for piece in self.segments)
            + sum(file.file_bytes for file in self.compacted)
        )


class Step(NamedTuple):
    """A part of the work is done."""

    copied_bytes: int
    finished: str | None = None
    """A file of the source that is not needed any more."""


def cut_of_running(files: Files, metadata: Metadata, wal: Wal, taken_us: int) -> Cut:
    """This moment of an engine that serves. Blocking, for as long as copying the small metadata takes.

    The caller sees to it that no file is removed meanwhile.
    """
    with metadata.standing_still() as copy:
        # In this order: what a write does between two of these lines is left out, never half of it.
        next_sequence = wal.next_sequence
        active = wal.active
        end = active.end if active is not None else 0
        names = [name for name in _segments(files) if (first_sequence_of(name) or 0) < next_sequence]
    newest = active.name if active is not None and end else None
    pieces = [
        Piece(name, end, 0) if name == newest else _whole(files, name)
        for name in names
        if newest is None or name <= newest
    ]
    return _cut(taken_us, copy, pieces)


def cut_of_stopped(files: Files, taken_us: int) -> Cut:
    """A data directory that nobody writes to, as it lies there, be it after a crash. The caller holds its lock."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        source = files.database(METADATA_NAME)
        try:
            source.backup(copy)
        finally:
            source.close()
    except sqlite3.Error as error:
        copy.close()
        raise CorruptData(f"{files.location}/{METADATA_NAME} cannot be read: {error}") from error
    names = _segments(files)
    pieces = [_whole(files, name) for name in names[:-1]]
    for name in names[-1:]:
        # The newest is mostly zeros that wait to be written.
        file = files.open(name)
        try:
            length = len(file.read_at(0, file.size).rstrip(b"\0"))
        finally:
            file.close()
        if length:
            pieces.append(Piece(name, length, 0))
    return _cut(taken_us, copy, pieces)


def write_backup(source: Files, cut: Cut, target: Files, *, include_key: bool) -> Generator[Step, None, Written]:
    """Copy everything that belongs to the cut, check it, and write the manifest. Blocking from step to step."""
    copied: list[CopiedFile] = []
    checked = Checked(cut.trims, cut.dropped)
    target.make_directory(WAL_DIRECTORY)
    for piece in cut.segments:
        for name in (piece.name, piece.name + INDEX_SUFFIX) if piece.index_bytes else (piece.name,):
            length = piece.length if name == piece.name else None
            copied.append((yield from _copied(source, name, target, length)))
        check_segment(target, piece.name, checked, indexed=piece.index_bytes > 0, newest=piece is cut.segments[-1])
        yield Step(0, piece.name)
    for file in cut.compacted:
        target.make_directory(file.name.rpartition("/")[0])
        copied.append((yield from _copied(source, file.name, target, None)))
        check_compacted(target, file, checked)
        yield Step(0, file.name)
    copied.append(CopiedFile(METADATA_NAME, *write_whole(target, METADATA_NAME, cut.metadata)))
    yield Step(len(cut.metadata))
    if include_key:
        _copy_key(source, cut, target)
    manifest = make_manifest(
        cut.taken_us,
        master_key=include_key,
        files=tuple(copied),
        partitions=checked.partitions(),
        damaged=tuple(checked.damaged),
    )
    write_whole(target, MANIFEST_NAME, encode_manifest(manifest))
    return Written(len(copied), manifest.bytes, manifest.partitions, manifest.damaged)


class Written(NamedTuple):
    files: int
    bytes: int
    partitions: tuple[PartitionOffsets, ...]
    damaged: tuple[str, ...]

    def report(self, target: Path, cut: Cut, *, include_key: bool, seconds: float) -> BackupReport:
        return BackupReport(
            str(target), cut.taken_us, self.files, self.bytes, include_key, self.partitions, self.damaged, seconds
        )


def backup_directory(
    data: Path,
    target: Path,
    *,
    include_key: bool = True,
    progress: Progress | None = None,
    open_files: OpenFiles = DiskFiles,
) -> BackupReport:
    """Back up a data directory that no process holds, without starting it: as `LocalEngine.backup`, blocking.

    `DataDirectoryInUse` when a process does hold it.
    """
    files = DiskFiles(data, create=False)
    if not files.exists(METADATA_NAME):
        raise StorageError(f"{str(data)!r} is not a Sealane data directory: there is no {METADATA_NAME}")
    started = time.monotonic()
    files.acquire()
    try:
        draft = Draft(target, open_files)
        try:
            draft.begin(files.location)
            cut = cut_of_stopped(files, time.time_ns() // 1_000)
            check_room(draft, cut)
            written = _all_steps(write_backup(files, cut, draft.files, include_key=include_key), cut.bytes, progress)
            draft.finish()
        except OSError as error:
            raise draft.failure(error) from error
        finally:
            draft.abandon()
    finally:
        files.release()
    return written.report(draft.target, cut, include_key=include_key, seconds=time.monotonic() - started)


def check_room(draft: Draft, cut: Cut, *, free_bytes_min: int = 0) -> None:
    """Find out before the copying whether it can end well."""
    free = draft.files.free_bytes()
    if free < cut.bytes + free_bytes_min:
        raise StorageError(
            f"backup to {str(draft.target)!r} refused: it takes {cut.bytes:,} bytes and {free:,} are free there, of "
            f"which {free_bytes_min:,} must stay free; make room, or choose another disk"
        )


def _all_steps(steps: Generator[Step, None, Written], total: int, progress: Progress | None) -> Written:
    done = 0
    while True:
        try:
            done += next(steps).copied_bytes
        except StopIteration as end:
            return end.value
        if progress is not None:
            progress(min(done, total), total)


def _segments(files: Files) -> list[str]:
    names = [f"{WAL_DIRECTORY}/{name}" for name in files.list(WAL_DIRECTORY)]
    return [name for name in names if first_sequence_of(name) is not None]


def _whole(files: Files, name: str) -> Piece:
    index = name + INDEX_SUFFIX
    return Piece(name, _size(files, name), _size(files, index) if files.exists(index) else 0)


def _size(files: Files, name: str) -> int:
    file = files.open(name)
    try:
        return file.size
    finally:
        file.close()


def _cut(taken_us: int, copy: sqlite3.Connection, pieces: list[Piece]) -> Cut:
    image = copy.serialize()
    metadata = Metadata(copy, lambda: taken_us)
    try:
        superseded = set(metadata.garbage())
        compacted = tuple(metadata.manifest())
        segments = tuple(piece for piece in pieces if piece.name not in superseded)
        return Cut(taken_us, image, segments, compacted, metadata.trims(), metadata.dropped(), metadata.key_check())
    finally:
        metadata.close()


def _copied(source: Files, name: str, target: Files, length: int | None) -> Generator[Step, None, CopiedFile]:
    copying = copy_file(source, name, target, name, length)
    while True:
        try:
            step = next(copying)
        except StopIteration as end:
            return CopiedFile(name, *end.value)
        yield Step(step)


def _copy_key(source: Files, cut: Cut, target: Files) -> None:
    text = read_master_key(source, cut.key_check)
    where = f"{source.location}/{MASTER_KEY_FILE}"
    if text is None:
        raise KeyUnavailable(f"{where} is missing: put it back, or make a backup without the key")
    if cut.key_check is not None and check_value(parse_master_key(text, where)) != cut.key_check:
        raise KeyUnavailable(f"{where} is not the key that sealed the data here; put the right one back")
    target.write_secret(MASTER_KEY_FILE, text)
