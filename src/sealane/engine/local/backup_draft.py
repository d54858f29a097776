"""The place where a backup is written until it is whole: a directory beside its target, renamed at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from sealane.engine.local.files import DiskFiles, Files
from sealane.errors import DataDirectoryInUse, StorageError
from sealane.whole_files import sync

OpenFiles = Callable[[Path], Files]


class Draft:
    """Begun, then finished; in any case abandoned at the end. Blocking. The next one clears what a killed one left."""

    def __init__(self, target: Path, open_files: OpenFiles = DiskFiles) -> None:
        self.target = Path(os.path.abspath(target))
        self._path = self.target.with_name(f".{self.target.name}.unfinished")
        self._open_files = open_files
        self._files: Files | None = None

    @property
    def files(self) -> Files:
        """Where the backup is written."""
        assert self._files is not None, "it has begun"
        return self._files

    def begin(self, source: str) -> None:
        """Refuses, by `StorageError`, a target that holds anything, or that lies in the directory it is a copy of."""
        target = self.target
        if target.resolve().is_relative_to(Path(source).resolve()):
            raise self._refusal("it lies in the data directory; choose another place")
        if not target.parent.is_dir():
            raise self._refusal(f"{str(target.parent)!r} is not a directory; make it first")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise self._refusal("something is there already; name a new directory")
        files = self._open_files(self._path)
        try:
            files.acquire()
        except DataDirectoryInUse as error:
            raise self._refusal(f"process {error.pid} is making one there; wait for it") from None
        self._files = files
        _clear(self._path)

    def finish(self) -> None:
        """Make all of it durable, and give it its name."""
        for directory, _, _ in os.walk(self._path, topdown=False):
            sync(Path(directory))
        os.unlink(self._path / DiskFiles.LOCK)
        os.rename(self._path, self.target)
        sync(self.target.parent)

    def abandon(self) -> None:
        """Leave nothing behind of what was not finished."""
        if self._files is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._files.release()
            self._files = None

    def failure(self, error: OSError) -> StorageError:
        """What a caller is told of an error in the middle of the work."""
        return StorageError(f"backup to {str(self.target)!r} failed, and nothing of it was left behind: {error}")

    def _refusal(self, problem: str) -> StorageError:
        return StorageError(f"backup to {str(self.target)!r} refused: {problem}")


def _clear(path: Path) -> None:
    for left in path.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        elif left.name != DiskFiles.LOCK:
            left.unlink()
