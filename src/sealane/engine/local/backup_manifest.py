"""`backup.json`: what is in a backup, so that a restore can tell whether all of it is there and as it was written."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import msgspec

from sealane._version import __version__
from sealane.engine.backup_report import PartitionOffsets
from sealane.engine.local.files import Files
from sealane.errors import CorruptData, FormatTooNew, StorageError

MANIFEST_NAME = "backup.json"
FORMAT = 1

_NAME = re.compile(r"meta\.db|wal/[^/]+|compacted/[^/]+/[^/]+/[^/]+")
"""What a backup may hold. A name from outside must not lead a restore to any other place."""


class CopiedFile(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True):
    """All fields are written; a later format may add some."""

    format: int
    sealane: str
    """The version that made it."""
    taken: str
    """When, for people; `taken_us` has the same for programs."""
    taken_us: int
    master_key: bool
    """Whether the master key is in the backup, as `master.key`. That file checks itself, and is not listed."""
    files: tuple[CopiedFile, ...]
    partitions: tuple[PartitionOffsets, ...]
    damaged: tuple[str, ...]
    checksum: str = ""
    """SHA-256 of this manifest, without spaces and with this field empty."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def make_manifest(
    taken_us: int,
    *,
    master_key: bool,
    files: tuple[CopiedFile, ...],
    partitions: tuple[PartitionOffsets, ...],
    damaged: tuple[str, ...],
) -> BackupManifest:
    taken = datetime.fromtimestamp(taken_us / 1e6, UTC).isoformat(timespec="seconds")
    manifest = BackupManifest(FORMAT, __version__, taken, taken_us, master_key, files, partitions, damaged)
    return msgspec.structs.replace(manifest, checksum=_checksum(manifest))


def encode_manifest(manifest: BackupManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(files: Files) -> BackupManifest:
    """The manifest of the backup that `files` is. `StorageError` when it is none, `CorruptData` when it is damaged."""
    where = f"{files.location}/{MANIFEST_NAME}"
    if not files.exists(MANIFEST_NAME):
        raise StorageError(
            f"{files.location!r} is not a backup: there is no {MANIFEST_NAME}; name one that was finished"
        )
    file = files.open(MANIFEST_NAME)
    try:
        data = file.read_at(0, file.size)
    finally:
        file.close()
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version > FORMAT:
            raise FormatTooNew(where, version, FORMAT)
        manifest = msgspec.json.decode(data, type=BackupManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptData(f"{where} is damaged: {error}; use another backup") from None
    if manifest.checksum != _checksum(manifest):
        raise CorruptData(f"{where} is damaged: its checksum does not match; use another backup")
    for listed in manifest.files:
        if not _NAME.fullmatch(listed.name) or ".." in listed.name.split("/"):
            raise CorruptData(f"{where} lists {listed.name!r}, which no backup holds; use another backup")
    return manifest


class _Version(msgspec.Struct):
    format: int


def _checksum(manifest: BackupManifest) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(manifest, checksum=""))).hexdigest()
