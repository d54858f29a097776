"""A data directory that is only ever read, also one on a read-only disk or that a node holds."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote


class ReadableFile:
    """An open file. It stays readable when the node removes it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_at(self, position: int, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            part = os.pread(self._descriptor, min(length, 1 << 30), position)
            if not part:
                break
            parts.append(part)
            position += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> ReadableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ReadableFiles:
    """The files of a data directory, by names relative to it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def location(self) -> str:
        return str(self._directory)

    def open(self, name: str) -> ReadableFile:
        return ReadableFile(self._directory / name)

    def exists(self, name: str) -> bool:
        return (self._directory / name).exists()

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self._directory / directory) if entry.is_file())
        except FileNotFoundError:
            return []

    def read_secret(self, name: str) -> bytes | None:
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None

    def copy_database(self, name: str) -> sqlite3.Connection:
        """A copy in memory of what the database holds now: the node never waits for us, nor we for it."""
        path = self._directory / name
        journal = path.with_name(path.name + "-wal")
        uri = f"file:{quote(str(path.absolute()))}"
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        if not journal.exists():
            # Nobody has it open. Said so, SQLite leaves no files of its own behind, and a read-only disk will do.
            _copy(f"{uri}?immutable=1", copy)
        if journal.exists():
            _copy(f"{uri}?mode=ro", copy)
        return copy


def _copy(uri: str, target: sqlite3.Connection) -> None:
    source = sqlite3.connect(uri, uri=True)
    try:
        source.backup(target)
    finally:
        source.close()
