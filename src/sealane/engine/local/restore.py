"""Restoring a backup into an empty data directory, after checking every byte of it.

The restored directory is a new incarnation. The original may have gone on after the backup, and its clients with it:
the epochs, leases and versions that it gave out since must never be given out again for something else. So both
counters go far ahead, by a distance that differs from restore to restore.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from sealane.engine.backup_report import PartitionOffsets, Progress
from sealane.engine.local.backup_manifest import BackupManifest, CopiedFile, read_manifest
from sealane.engine.local.copying import copy_file
from sealane.engine.local.files import DiskFiles, Files
from sealane.engine.local.metadata import METADATA_NAME, Metadata
from sealane.engine.local.segment import WAL_DIRECTORY
from sealane.engine.local.start import RESTORE_DRAFT
from sealane.errors import CorruptData, KeyUnavailable, StorageError
from sealane.security.at_rest.keys import MASTER_KEY_FILE, check_value, parse_master_key
from sealane.whole_files import sync

BOOTS_AHEAD = 1 << 13
"""At least how many starts a restored directory is ahead of its backup, and up to twice that: more than an original
makes before it is given up. A lease's number has room for hundreds of restores of restores."""
VERSIONS_AHEAD = 1 << 32
"""The same for versions of compare-and-set values."""

_NAMED_MAX = 5
"""So many damaged files are named one by one."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A finished restore: durable, and ready to start unless the key is missing."""

    data: str
    taken_us: int
    """The moment that the backup shows."""
    files: int
    bytes: int
    key_missing: bool
    """The backup was made without the master key: put it at `<data>/master.key` before the node starts."""
    partitions: tuple[PartitionOffsets, ...]
    damaged: tuple[str, ...]
    """What was damaged when the backup was made."""
    seconds: float

    @property
    def messages(self) -> int:
        return sum(partition.end - partition.start for partition in self.partitions)


def restore(
    backup: Path,
    data: Path,
    *,
    progress: Progress | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
    open_files: Callable[[Path], Files] = DiskFiles,
) -> RestoreReport:
    """Make `data` a data directory that holds what the backup holds. Blocking.

    Refuses a directory that a process holds (`DataDirectoryInUse`) or that is not empty (`StorageError`), and a backup
    of which a file is missing or not as it was written (`CorruptData` names it). After an error `data` is as before.
    """
    started = time.monotonic()
    manifest = read_manifest(DiskFiles(backup, create=False))
    made = not data.exists()
    files = DiskFiles(data)
    files.acquire()
    try:
        _check_empty(data)
        try:
            draft = open_files(data / RESTORE_DRAFT)
            if draft.free_bytes() < manifest.bytes:
                raise StorageError(
                    f"restore to {str(data)!r} refused: it takes {manifest.bytes:,} bytes, and {draft.free_bytes():,} "
                    "are free there"
                )
            _copy_all(DiskFiles(backup, create=False), manifest, draft, progress)
            _begin_incarnation(draft, manifest, entropy)
            _put_in_place(data)
        except OSError as error:
            raise StorageError(
                f"restore to {str(data)!r} failed, and nothing of it was left behind: {error}"
            ) from error
        finally:
            # Gone already when all went well.
            shutil.rmtree(data / RESTORE_DRAFT, ignore_errors=True)
    except BaseException:
        files.release()
        if made:
            shutil.rmtree(data, ignore_errors=True)
        raise
    files.release()
    return RestoreReport(
        str(data),
        manifest.taken_us,
        len(manifest.files),
        manifest.bytes,
        not manifest.master_key,
        manifest.partitions,
        manifest.damaged,
        time.monotonic() - started,
    )


def _check_empty(data: Path) -> None:
    found = {entry.name for entry in data.iterdir()} - {DiskFiles.LOCK}
    if found == {RESTORE_DRAFT}:
        # An earlier restore was killed before it had put anything in its place.
        shutil.rmtree(data / RESTORE_DRAFT)
    elif found:
        raise StorageError(
            f"restore to {str(data)!r} refused: it holds {sorted(found)[0]!r}; name a directory that is new or empty"
        )


def _copy_all(backup: Files, manifest: BackupManifest, draft: Files, progress: Progress | None) -> None:
    """Copy every file, and only then say which ones are not as they were: one look tells the whole extent."""
    damaged: list[str] = []
    done = 0
    total = manifest.bytes
    draft.make_directory(WAL_DIRECTORY)
    for file in manifest.files:
        if "/" in file.name:
            draft.make_directory(file.name.rpartition("/")[0])
        for step in _checked(backup, file, draft, damaged):
            done += step
            if progress is not None:
                progress(min(done, total), total)
    if damaged:
        more = f" and {len(damaged) - _NAMED_MAX:,} more" if len(damaged) > _NAMED_MAX else ""
        raise CorruptData(
            f"{backup.location!r} is damaged: {'; '.join(damaged[:_NAMED_MAX])}{more}; use another backup"
        )
    if manifest.master_key:
        text = backup.read_secret(MASTER_KEY_FILE)
        if text is None:
            raise CorruptData(f"{backup.location!r} is damaged: {MASTER_KEY_FILE} is missing; use another backup")
        draft.write_secret(MASTER_KEY_FILE, text)


def _checked(backup: Files, file: CopiedFile, draft: Files, damaged: list[str]) -> Generator[int, None, None]:
    if not backup.exists(file.name):
        damaged.append(f"{file.name} is missing")
        return
    size, digest = yield from copy_file(backup, file.name, draft, file.name)
    if size != file.bytes:
        damaged.append(f"{file.name} has {size:,} bytes, it was written with {file.bytes:,}")
    elif digest != file.sha256:
        damaged.append(f"{file.name} is not as it was written")


def _begin_incarnation(draft: Files, manifest: BackupManifest, entropy: Callable[[int], bytes]) -> None:
    try:
        metadata = Metadata(draft.database(METADATA_NAME), lambda: manifest.taken_us)
    except sqlite3.Error as error:
        raise CorruptData(f"{METADATA_NAME} of the backup cannot be read: {error}; use another backup") from error
    try:
        known = metadata.key_check()
        text = draft.read_secret(MASTER_KEY_FILE)
        if text is not None and known not in (None, check_value(parse_master_key(text, MASTER_KEY_FILE))):
            raise KeyUnavailable(f"{MASTER_KEY_FILE} of the backup is not the key that sealed its data")
        more = int.from_bytes(entropy(4), "little") % BOOTS_AHEAD
        metadata.begin_incarnation(BOOTS_AHEAD + more, VERSIONS_AHEAD)
    finally:
        metadata.close()


def _put_in_place(data: Path) -> None:
    """Move everything up, durably. A node does not start here before the draft is gone, whole or half empty."""
    draft = data / RESTORE_DRAFT
    for directory, _, _ in os.walk(draft, topdown=False):
        sync(Path(directory))
    names = sorted(entry.name for entry in draft.iterdir())
    try:
        for name in names:
            os.rename(draft / name, data / name)
        sync(data)
        os.rmdir(draft)
        sync(data)
    except OSError:
        for name in names:
            shutil.rmtree(data / name, ignore_errors=True)
            (data / name).unlink(missing_ok=True)
        raise
