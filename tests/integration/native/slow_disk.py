"""A data directory on a disk whose syncs wait until a test lets them go on."""

from __future__ import annotations

import threading
from pathlib import Path

from sealane.engine.local.files import DiskFile, DiskFiles


class SlowFiles(DiskFiles):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.goes_on = threading.Event()
        self.goes_on.set()

    def open(self, name: str, *, create: bool = False) -> SlowFile:
        return SlowFile(self, self._path(name), create=create)


class SlowFile(DiskFile):
    def __init__(self, files: SlowFiles, path: Path, *, create: bool) -> None:
        super().__init__(path, create=create)
        self._files = files

    def sync(self) -> None:
        self._files.goes_on.wait()
        super().sync()
