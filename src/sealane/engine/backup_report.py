"""What a backup says of itself, and what an engine promises that can make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

Progress = Callable[[int, int], None]
"""Called as the work goes on with the bytes done and the bytes there are."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """How far one partition's logs reach in a backup: [start, end) of its messages and of its journal."""

    domain: str
    topic: str
    incarnation: int
    partition: int
    start: int
    end: int
    journal_start: int
    journal_end: int


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A finished backup: complete, durable, and under its name."""

    target: str
    taken_us: int
    """The moment it shows: whatever was acknowledged before is in it."""
    files: int
    bytes: int
    key_included: bool
    partitions: tuple[PartitionOffsets, ...]
    damaged: tuple[str, ...]
    """What was damaged in the source already, and is so in the backup: one sentence for each file."""
    seconds: float

    @property
    def messages(self) -> int:
        """Those of users: what is the system's, such as the audit log, is in it too and not counted."""
        users = (each for each in self.partitions if not each.domain.startswith("_") and not each.topic.startswith("_"))
        return sum(partition.end - partition.start for partition in users)


@runtime_checkable
class BacksUp(Protocol):
    """An engine that can copy all it holds while it serves."""

    async def backup(self, target: Path, *, include_key: bool = True, progress: Progress | None = None) -> BackupReport:
        """Copy everything that was acknowledged before the call into a new directory `target`.

        Writes go on meanwhile. The target appears whole or not at all: `StorageError` says what was in the way, and
        leaves nothing behind. Without the master key the copy is useless to a thief, and to you unless you keep the
        key elsewhere.
        """
        ...
