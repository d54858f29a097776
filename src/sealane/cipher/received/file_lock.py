"""One receiver a file: two would write over what the other has acknowledged."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sealane.cipher.errors import OutputInUse


class FileLock:
    """Held from its making to `release`, or to the end of the process, however that comes."""

    def __init__(self, path: Path) -> None:
        """Raises `OutputInUse`. The lock is a file beside the other, which itself may be replaced."""
        self._path = path.with_name(f".{path.name}.lock")
        while True:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._descriptor)
                raise OutputInUse(str(path)) from None
            if self._is_in_place():
                return
            os.close(self._descriptor)  # Its holder has removed it in the meantime: the next one counts.

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False
