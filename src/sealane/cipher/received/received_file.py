"""What every file of received messages can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sealane.cipher.received.entry import Entry
from sealane.cipher.received.file_lock import FileLock
from sealane.cipher.received.recent_ids import RecentIds


class ReceivedFile(ABC):
    """It is one receiver's until it is closed. What it has from earlier is read when it is opened."""

    def __init__(self, path: Path) -> None:
        """Raises `OutputInUse`, `OSError`, and `CorruptData` for a file with something else, which is left as it is."""
        # A link stays one: what it leads to is written, also where a file is replaced.
        self.path = path.resolve()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ids = RecentIds()
        self._lock = FileLock(self.path)
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    def store(self, entries: Sequence[Entry]) -> None:
        """Durable on return, all of them. Raises what keeps it from that: then none of them counts as stored."""
        self._write(entries)
        self.ids.add(entry.message_id for entry in entries)

    def close(self) -> None:
        self._close()
        self._lock.release()

    @abstractmethod
    def _open(self) -> None:
        """Read what is there, and add its ids."""

    @abstractmethod
    def _write(self, entries: Sequence[Entry]) -> None:
        """Add them to the file, durable on return."""

    def _close(self) -> None:  # noqa: B027 - a file that is replaced has nothing to close
        """Let go of what `_open` took."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
