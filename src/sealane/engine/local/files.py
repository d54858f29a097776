"""The narrow seam between the local engine and the disk.

Everything the engine does to files goes through `Files` and `File`, so that a simulated disk can tear writes, flip bits,
fail a sync, fill up, or forget what was never synced. `DiskFiles` is the real thing: thin, with no policy of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Protocol


class File(Protocol):
    """An open file. Positions are explicit: there is no cursor to share."""

    @property
    def size(self) -> int: ...

    def write_at(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        """Write all of the buffers one after another from `position`; all of it or an OSError."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer at the end of the file."""
        ...

    def zero_fill(self, length: int) -> None:
        """Make the file at least `length` long with real zeros on disk, so that later writes change no metadata."""
        ...

    def truncate(self, length: int) -> None: ...

    def sync(self) -> None:
        """Return once the data is on disk (fdatasync). Never call it again after it has failed."""
        ...

    def close(self) -> None: ...


class Files(Protocol):
    """A data directory. Names are relative, with `/`."""

    @property
    def location(self) -> str:
        """What an error message calls this directory."""
        ...

    def open(self, name: str, *, create: bool = False) -> File: ...
    def exists(self, name: str) -> bool: ...
    def list(self, directory: str) -> list[str]:
        """Names of the files in a directory, sorted; empty when there is no such directory."""
        ...

    def make_directory(self, name: str) -> None: ...
    def rename(self, old: str, new: str) -> None:
        """Atomic replacement, durable on return (the directory is synced)."""
        ...

    def remove(self, name: str) -> None: ...
    def sync_directory(self, name: str) -> None: ...
    def free_bytes(self) -> int: ...
    def database(self, name: str) -> sqlite3.Connection:
        """A SQLite database (WAL mode, synchronous FULL) whose commits are durable. Autocommit off."""
        ...

    def read_secret(self, name: str) -> bytes | None: ...
    def write_secret(self, name: str, data: bytes) -> None:
        """Write once, readable by the owner alone (0600), durable on return; refuses to overwrite."""
        ...
