"""Backing up an engine while it serves: in short steps off the event loop, at a bounded rate, keeping what it needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from sealane.engine.backup_report import BackupReport, Progress
from sealane.engine.local.backup import Cut, Step, Written, check_room, cut_of_running, write_backup
from sealane.engine.local.backup_draft import Draft, OpenFiles
from sealane.engine.local.files import DiskFiles, Files
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.reading import Sources
from sealane.engine.local.runner import Runner
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.wal import Wal
from sealane.errors import Closed, StorageError
from sealane.log import get_log

_log = get_log("sealane.engine")

T = TypeVar("T")


class OnlineBackup:
    """Makes backups of one engine, one at a time."""

    def __init__(
        self,
        files: Files,
        settings: StorageSettings,
        *,
        metadata: Metadata,
        wal: Wal,
        sources: Sources,
        runner: Runner,
        clock: Callable[[], int],
        open_files: OpenFiles = DiskFiles,
    ) -> None:
        self._files = files
        self._settings = settings
        self._metadata = metadata
        self._wal = wal
        self._sources = sources
        self._runner = runner
        self._clock = clock
        self.open_files = open_files
        self._task: asyncio.Task[BackupReport] | None = None
        self._closing = False

    @property
    def is_under_way(self) -> bool:
        return self._task is not None

    async def run(self, target: Path, *, include_key: bool, progress: Progress | None) -> BackupReport:
        """As `BacksUp.backup`. Cancelled, it clears up first."""
        if self._task is not None:
            raise StorageError(f"backup to {str(target)!r} refused: another one is under way; wait for it")
        self._task = asyncio.create_task(self._carry_out(target, include_key, progress))
        try:
            return await self._task
        finally:
            self._task = None

    async def close(self) -> None:
        """Give up what is under way; it clears up first."""
        self._closing = True
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _carry_out(self, target: Path, include_key: bool, progress: Progress | None) -> BackupReport:
        started = time.monotonic()
        draft = Draft(target, self.open_files)
        try:
            await self._work(lambda: draft.begin(self._files.location))
            cut = await self._cut()
            kept = set(cut.names)
            try:
                check_room(draft, cut, free_bytes_min=self._settings.disk_free_bytes_min)
                steps = write_backup(self._files, cut, draft.files, include_key=include_key)
                written = await self._copy(steps, cut.bytes, kept, progress)
            finally:
                self._sources.let_go(kept)
            await self._work(draft.finish)
        except OSError as error:
            raise draft.failure(error) from error
        finally:
            await self._work(draft.abandon)
        for damage in written.damaged:
            _log.error("a backup holds data that is damaged at its source", backup=str(draft.target), detail=damage)
        _log.info("a backup was made", backup=str(draft.target), files=written.files, bytes=written.bytes)
        return written.report(draft.target, cut, include_key=include_key, seconds=time.monotonic() - started)

    async def _cut(self) -> Cut:
        """The cut, whose files are kept from here on."""
        self._sources.keep_all()
        try:
            cut = await self._work(lambda: cut_of_running(self._files, self._metadata, self._wal, self._clock()))
            self._sources.keep(cut.names)
        finally:
            self._sources.let_go_of_all()
        return cut

    async def _copy(
        self, steps: Generator[Step, None, Written], total: int, kept: set[str], progress: Progress | None
    ) -> Written:
        loop = asyncio.get_running_loop()
        done = 0
        due = loop.time()
        written: list[Written] = []

        def next_step() -> Step | None:
            try:
                return next(steps)
            except StopIteration as end:
                written.append(end.value)
                return None

        try:
            while (step := await self._work(next_step)) is not None:
                if self._closing:
                    raise Closed("the engine is closing: the backup was given up, and nothing of it was left behind")
                if step.finished is not None:
                    kept.discard(step.finished)
                    self._sources.let_go([step.finished])
                done += step.copied_bytes
                if progress is not None:
                    progress(min(done, total), total)
                due = max(due, loop.time()) + step.copied_bytes / self._settings.backup_bytes_per_second_max
                await asyncio.sleep(due - loop.time())
        finally:
            # Closes the files that an unfinished step has open.
            steps.close()
        return written[0]

    async def _work(self, work: Callable[[], T]) -> T:
        """Run it off the loop, and never leave it running: what is cleared up next must not come back."""
        running = asyncio.ensure_future(self._runner.run(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
