"""How much of the disk the engine uses, and whether it may use more."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import NamedTuple

from sealane.engine.local.settings import StorageSettings
from sealane.errors import StorageFull
from sealane.log import get_log

_log = get_log("sealane.engine")


class Lacking(NamedTuple):
    """Why there is no room."""

    used_bytes: int
    limit_bytes: int
    what: str

    def error(self) -> StorageFull:
        return StorageFull(*self)


class Space:
    """Counts the bytes of all log files, as they are allocated."""

    def __init__(self, settings: StorageSettings, free_bytes: Callable[[], int]) -> None:
        self._settings = settings
        self._free_bytes = free_bytes
        self._sizes: dict[str, int] = {}
        # Segments are prepared on one thread while commits fill them on another.
        self._lock = threading.Lock()
        self.bytes_used = 0
        self._full: Lacking | None = None

    @property
    def full(self) -> Lacking | None:
        """Why publishes are refused, if they are."""
        return self._full

    @full.setter
    def full(self, lacking: Lacking | None) -> None:
        before, self._full = self._full, lacking
        if lacking is not None and before is None:
            _log.warning(
                "storage is full: publishes are refused until there is room",
                used_bytes=lacking.used_bytes,
                limit_bytes=lacking.limit_bytes,
                limit=lacking.what,
            )
        elif lacking is None and before is not None:
            _log.info("storage has room again", used_bytes=self.bytes_used)

    def hold(self, name: str, size: int) -> None:
        """A file of this name takes `size` bytes now."""
        with self._lock:
            self.bytes_used += size - self._sizes.get(name, 0)
            self._sizes[name] = size

    def claim(self, name: str, size: int, *, missing_bytes: int) -> Lacking | None:
        """Hold `size` bytes for a file of which `missing_bytes` have yet to be allocated, if there is room for it.

        One step: two threads that ask for the last room do not both get it.
        """
        with self._lock:
            more_bytes = size - self._sizes.get(name, 0)
            lacking = self._over_limit(more_bytes) or self._over_disk(missing_bytes)
            if lacking is None:
                self.bytes_used += more_bytes
                self._sizes[name] = size
            return lacking

    def take_over(self, old: str, new: str, size: int, *, missing_bytes: int) -> Lacking | None:
        """As `claim` for `new`, with the room that was held for `old`, which keeps it only if this is refused."""
        with self._lock:
            more_bytes = size - self._sizes.get(old, 0)
            lacking = self._over_limit(more_bytes) or self._over_disk(missing_bytes)
            if lacking is None:
                self.bytes_used += more_bytes
                self._sizes.pop(old, None)
                self._sizes[new] = size
            return lacking

    def renamed(self, old: str, new: str) -> None:
        with self._lock:
            self._sizes[new] = self._sizes.pop(old)

    def release(self, name: str) -> None:
        with self._lock:
            self.bytes_used -= self._sizes.pop(name, 0)

    def lacking(self, more_bytes: int) -> Lacking | None:
        """What would be exceeded by `more_bytes` more; None when there is room."""
        return self._over_limit(more_bytes) or self._over_disk(more_bytes)

    def _over_limit(self, more_bytes: int) -> Lacking | None:
        limit = self._settings.disk_bytes_max
        if limit is not None and more_bytes > 0 and self.bytes_used + more_bytes > limit:
            return Lacking(self.bytes_used, limit, "storage.disk_bytes_max")
        return None

    def _over_disk(self, more_bytes: int) -> Lacking | None:
        free = self._free_bytes()
        return self.exhausted(free) if free < more_bytes + self._settings.disk_free_bytes_min else None

    @staticmethod
    def is_full(error: BaseException) -> bool:
        """Whether the operating system says that there is no room."""
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)

    def exhausted(self, free_bytes: int = 0) -> Lacking:
        """The refusal when it is the disk itself that has no room."""
        return Lacking(self.bytes_used, self.bytes_used + free_bytes, "the disk")
