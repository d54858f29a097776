"""The narrow seam between the local engine and the disk.

Everything the engine does to files goes through `Files` and `File`, so that a simulated disk can tear writes, flip
bits, fail a sync, fill up, or forget what was never synced. `DiskFiles` is the real thing: thin, with no policy of its
own.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sealane.engine.local.past_cache import PAST_CACHE_BYTES_MIN, PastCache, past_end
from sealane.errors import DataDirectoryInUse
from sealane.whole_files import sync


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

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from `position` on; how many bytes there were, fewer at the end of the file."""
        ...

    def zero_fill(self, length: int, *, written: bool = True) -> None:
        """Make the file at least `length` long; it reads as zeros and its space is taken.

        `written`: with real zeros, on disk on return, so that later writes change no metadata. Otherwise the next sync
        is what makes it durable.
        """
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

    def acquire(self) -> None:
        """Become the one process that may write here, or raise `DataDirectoryInUse`. Reading needs no lock."""
        ...

    def release(self) -> None: ...

    def open(self, name: str, *, create: bool = False) -> File: ...
    def exists(self, name: str) -> bool: ...
    def list(self, directory: str) -> builtins.list[str]:
        """Names of the files in a directory, sorted; empty when there is no such directory."""
        ...

    def make_directory(self, name: str) -> None: ...
    def rename(self, old: str, new: str) -> None:
        """Atomic replacement, durable on return (the directory is synced)."""
        ...

    def remove(self, name: str) -> None: ...
    def sync_directory(self, name: str) -> None: ...
    def let_go(self, name: str) -> None:
        """The system need not keep a copy of this file in memory. What has not been synced stays there."""
        ...

    def free_bytes(self) -> int: ...
    def database(self, name: str) -> sqlite3.Connection:
        """A SQLite database (WAL mode, synchronous FULL) whose commits are durable. Autocommit off."""
        ...

    def read_secret(self, name: str) -> bytes | None: ...
    def write_secret(self, name: str, data: bytes) -> None:
        """Write once, readable by the owner alone (0600), durable on return; refuses to overwrite."""
        ...

    def rename_secret(self, old: str, new: str) -> None:
        """Put a secret in the place of another one, atomically; durable on return."""
        ...

    def remove_secret(self, name: str) -> None:
        """Durable on return."""
        ...


_VECTOR_MAX = 1024
"""Linux takes at most this many buffers in one call (IOV_MAX)."""
_ZERO_CHUNK = bytes(1 << 20)
_READ_CHUNK_BYTES = 1 << 30
"""One `pread` returns less than 2 GiB, whatever is asked."""


class DiskFile:
    """A file on a real disk."""

    def __init__(self, path: Path, *, create: bool) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except PermissionError:
            # A reader from outside, such as `sealane log`, may not be allowed to write.
            if create:
                raise
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._past_cache: PastCache | None = None
        self._only_through_cache = False

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def write_at(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        total = sum(map(len, buffers))
        if total >= PAST_CACHE_BYTES_MIN and self._write_past_cache(position, total, buffers):
            return
        self._write_through_cache(position, total, buffers)

    def _write_past_cache(self, position: int, total: int, buffers: Sequence[bytes | memoryview]) -> bool:
        """Into space that was taken before, and where the file system lets us; False if it cannot be done."""
        if self._only_through_cache or past_end(position, total) > self.size:
            return False
        if self._past_cache is None:
            try:
                self._past_cache = PastCache(self._descriptor)
            except OSError:  # A file system in memory, or a system that hides our descriptors: nothing was tried yet.
                self._only_through_cache = True
                return False
        try:
            self._past_cache.write(position, buffers)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._only_through_cache = True  # Its blocks are larger than ours.
            return False
        return True

    def _write_through_cache(self, position: int, total: int, buffers: Sequence[bytes | memoryview]) -> None:
        if len(buffers) <= _VECTOR_MAX and os.pwritev(self._descriptor, buffers, position) == total:
            return
        # Rare: too many buffers for one call, or the kernel took only a part. Writing it again from the start is sound,
        # since a position is explicit.
        joined = memoryview(b"".join(buffers))
        done = 0
        while done < total:
            done += os.pwrite(self._descriptor, joined[done:], position + done)

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self._descriptor, min(length, _READ_CHUNK_BYTES), position)
        if len(data) == length or not data:
            return data
        parts = [data]
        done = len(data)
        while done < length and data:
            data = os.pread(self._descriptor, min(length - done, _READ_CHUNK_BYTES), position + done)
            parts.append(data)
            done += len(data)
        return b"".join(parts)

    def read_into(self, position: int, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer):
            count = os.preadv(self._descriptor, [buffer[done : done + _READ_CHUNK_BYTES]], position + done)
            if not count:
                break
            done += count
        return done

    def zero_fill(self, length: int, *, written: bool = True) -> None:
        start = self.size
        if start >= length:
            return
        # Asking for the space first fails early when there is none, and gives one contiguous run where there is.
        os.posix_fallocate(self._descriptor, start, length - start)
        if not written:
            return
        for position in range(start, length, len(_ZERO_CHUNK)):
            zeros = memoryview(_ZERO_CHUNK)[: length - position]
            # Through the page cache: a small record that is written there later need not read its block first.
            self._write_through_cache(position, len(zeros), [zeros])
        os.fsync(self._descriptor)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._past_cache is not None:
            self._past_cache.close()
            self._past_cache = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DiskFiles:
    """A data directory on a real disk. Made, readable by its owner alone, when it does not exist."""

    LOCK = "lock"

    def __init__(self, directory: str | os.PathLike[str], *, create: bool = True) -> None:
        self._directory = Path(directory)
        self._lock: int | None = None
        if create:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def location(self) -> str:
        return str(self._directory)

    def acquire(self) -> None:
        if self._lock is not None:
            return  # Whoever holds it already may make sure of it early.
        descriptor = os.open(self._path(self.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 32, 0).strip()
            os.close(descriptor)
            raise DataDirectoryInUse(self.location, int(holder) if holder.isdigit() else None) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def release(self) -> None:
        if self._lock is not None:
            # The file stays: removing it would let two processes hold locks on two files of one name.
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        return DiskFile(self._path(name), create=create)

    def exists(self, name: str) -> bool:
        return self._path(name).exists()

    def list(self, directory: str) -> builtins.list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self._path(directory)) if entry.is_file())
        except FileNotFoundError:
            return []

    def make_directory(self, name: str) -> None:
        path = self._path(name)
        missing = []
        while not path.exists():
            missing.append(path)
            path = path.parent
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
            sync(directory.parent)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._path(old), self._path(new))
        sync(self._path(new).parent)

    def remove(self, name: str) -> None:
        os.unlink(self._path(name))

    def sync_directory(self, name: str) -> None:
        sync(self._path(name))

    def let_go(self, name: str) -> None:
        if hasattr(os, "posix_fadvise"):
            descriptor = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self._directory).free

    def database(self, name: str) -> sqlite3.Connection:
        path = self._path(name)
        # SQLite gives its files the mode of the database, so making that one private makes them all private.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def read_secret(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def write_secret(self, name: str, data: bytes) -> None:
        path = self._path(name)
        draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.write(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # A link appears whole or not at all, and refuses to take the place of an earlier secret.
            os.link(draft, path)
        finally:
            os.unlink(draft)
        sync(path.parent)

    def rename_secret(self, old: str, new: str) -> None:
        self.rename(old, new)

    def remove_secret(self, name: str) -> None:
        path = self._path(name)
        path.unlink()
        sync(path.parent)

    def _path(self, name: str) -> Path:
        return self._directory / name
