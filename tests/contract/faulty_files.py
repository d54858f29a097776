"""A data directory on a real disk that fails when a test says so."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from sealane.engine.local.files import DiskFile, DiskFiles

Operation = Literal["write", "sync", "zero_fill", "read"]


class FaultyFiles(DiskFiles):
    """Counts what is done to log files, and fails the operations that were asked to fail."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.done: Counter[Operation] = Counter()
        self.capacity_bytes: int | None = None
        """The disk has room for so many bytes of log files."""
        self._faults: dict[tuple[Operation, int], tuple[int, int | None]] = {}

    def fail(
        self, operation: Operation, *, after: int = 0, code: int = errno.EIO, short_bytes: int | None = None
    ) -> None:
        """Fail the next `operation`, or one `after` that many more; of a write, `short_bytes` still reach the disk."""
        self._faults[operation, self.done[operation] + after] = (code, short_bytes)

    def fault(self, operation: Operation) -> tuple[int, int | None] | None:
        number = self.done[operation]
        self.done[operation] += 1
        return self._faults.get((operation, number))

    def open(self, name: str, *, create: bool = False) -> FaultyFile:
        return FaultyFile(self, self._path(name), create=create)

    def log_bytes(self) -> int:
        found = 0
        for path in Path(self.location, "wal").iterdir():
            with suppress(FileNotFoundError):  # A thread may give a draft its name meanwhile.
                found += path.stat().st_size
        return found

    def free_bytes(self) -> int:
        return super().free_bytes() if self.capacity_bytes is None else max(0, self.capacity_bytes - self.log_bytes())


class FaultyFile(DiskFile):
    def __init__(self, files: FaultyFiles, path: Path, *, create: bool) -> None:
        super().__init__(path, create=create)
        self._files = files
        self._filling = False

    def write_at(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        if self._filling:
            # Zeros are counted, and fail, as what they are.
            super().write_at(position, buffers)
            return
        if fault := self._files.fault("write"):
            code, short_bytes = fault
            if short_bytes is not None:
                super().write_at(position, [b"".join(buffers)[:short_bytes]])
            raise OSError(code, os.strerror(code))
        self._check_room(position + sum(map(len, buffers)))
        super().write_at(position, buffers)

    def read_at(self, position: int, length: int) -> bytes:
        self._raise("read")
        return super().read_at(position, length)

    def read_into(self, position: int, buffer: memoryview) -> int:
        self._raise("read")
        return super().read_into(position, buffer)

    def zero_fill(self, length: int, *, written: bool = True) -> None:
        self._raise("zero_fill")
        self._check_room(length)
        self._filling = True
        try:
            super().zero_fill(length, written=written)
        finally:
            self._filling = False

    def sync(self) -> None:
        self._raise("sync")
        super().sync()

    def _raise(self, operation: Operation) -> None:
        if fault := self._files.fault(operation):
            raise OSError(fault[0], os.strerror(fault[0]))

    def _check_room(self, end: int) -> None:
        more = end - self.size
        if self._files.capacity_bytes is not None and more > 0 and more > self._files.free_bytes():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
