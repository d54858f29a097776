"""An engine that a test backs up at chosen moments, and the eyes to look at what was restored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from sealane.cli.log_verify import verify
from sealane.engine import BackupReport, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings, restore
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.files import DiskFile, Files
from tests.contract.owners import Clock, payloads

KiB = 1024
SMALL = StorageSettings(
    segment_bytes=8 * KiB, segment_bytes_first=8 * KiB, disk_free_bytes_min=0, compaction_segments_min=1_000
)
"""Segments that a few messages fill; compacted when the test says so."""


async def start(path: Path, settings: StorageSettings = SMALL, files: Files | None = None) -> LocalEngine:
    return await LocalEngine.start(
        files or DiskFiles(path),
        settings=settings,
        clock=Clock(),
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )


class HookedFiles(DiskFiles):
    """A target that stops before it opens its file number `at`, until the loop has carried out `action`."""

    def __init__(self, directory: Path, at: int, action: Callable[[], Awaitable[None]]) -> None:
        super().__init__(directory)
        self._left = at
        self._action = action
        self._loop: asyncio.AbstractEventLoop | None = None

    def on(self, loop: asyncio.AbstractEventLoop) -> HookedFiles:
        self._loop = loop
        return self

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        if create:
            self._left -= 1
            if self._left == 0:
                assert self._loop is not None
                asyncio.run_coroutine_threadsafe(self._act(), self._loop).result(60)
        return super().open(name, create=create)

    async def _act(self) -> None:
        await self._action()


async def backup_with(
    engine: LocalEngine, target: Path, *, at: int, action: Callable[[], Awaitable[None]]
) -> BackupReport:
    """Back up, with `action` in the middle: before the target's file number `at` (from 1) is written."""
    loop = asyncio.get_running_loop()
    engine._backup.open_files = lambda path: HookedFiles(path, at, action).on(loop)
    try:
        return await engine.backup(target)
    finally:
        engine._backup.open_files = DiskFiles


async def contents(directory: Path) -> dict[PartitionKey, tuple[int, list[bytes], list[tuple[int, bytes]]]]:
    """What a node that starts there finds: for each partition its start, its payloads from there on, its journal.

    Fails unless everything that is there is whole.
    """
    assert verify(directory, lambda done, total: None).damage == []
    engine = await start(directory)
    try:
        assert engine.recovery.quarantined == []
        assert engine.recovery.unexplained == []
        assert engine.recovery.cut_bytes == 0, "a backup ends where a record ends"
        found = {}
        for key in list(engine._partitions):
            opened = await engine.open(key)
            assert opened.lost == ()
            assert opened.journal_lost == ()
            stored = await payloads(engine, key, opened.start)
            journal = await engine.read_journal(key, opened.journal_start)
            assert len(stored) == opened.end - opened.start
            assert [number for number, _ in journal] == list(range(opened.journal_start, opened.journal_end))
            found[key] = opened.start, stored, journal
        return found
    finally:
        await engine.close()


async def restored(backup: Path, data: Path) -> dict[PartitionKey, tuple[int, list[bytes], list[tuple[int, bytes]]]]:
    restore(backup, data)
    return await contents(data)


def files_under(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()}
