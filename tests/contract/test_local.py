"""The local engine keeps the contract on a real disk, however it commits and however small its files are."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealane.engine import Engine
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from tests.contract.engine_suite import DurableEngineSuite, Reopen
from tests.contract.owners import Clock


class Directory:
    """A data directory whose engine a test may restart."""

    def __init__(self, path: Path, clock: Clock, settings: StorageSettings) -> None:
        self.path = path
        self.clock = clock
        self.settings = settings
        self.engine: LocalEngine | None = None

    async def start(self) -> LocalEngine:
        self.engine = await LocalEngine.start(
            DiskFiles(self.path),
            settings=self.settings,
            clock=self.clock,
            entropy=os.urandom,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
        )
        return self.engine

    async def restart(self) -> LocalEngine:
        await self.stop()
        return await self.start()

    async def stop(self) -> None:
        if self.engine is not None:
            await self.engine.close()


class TestLocalEngine(DurableEngineSuite):
    @pytest.fixture
    def settings(self) -> StorageSettings:
        return StorageSettings()

    @pytest.fixture
    async def directory(self, tmp_path: Path, clock: Clock, settings: StorageSettings) -> AsyncIterator[Directory]:
        directory = Directory(tmp_path / "data", clock, settings)
        yield directory
        await directory.stop()

    @pytest.fixture
    async def engine(self, directory: Directory) -> Engine:
        return await directory.start()

    @pytest.fixture
    def reopen(self, directory: Directory) -> Reopen:
        return directory.restart


class TestLocalEngineOnTheLoop(TestLocalEngine):
    """Every commit inline."""

    @pytest.fixture
    def settings(self) -> StorageSettings:
        return StorageSettings(commit="inline")


class TestLocalEngineOnAThread(TestLocalEngine):
    """Every commit on the worker thread."""

    @pytest.fixture
    def settings(self) -> StorageSettings:
        return StorageSettings(commit="thread")


class TestLocalEngineFromDisk(TestLocalEngine):
    """Segments that hold a record or two, no memory tail to speak of, and compaction all the time."""

    @pytest.fixture
    def settings(self) -> StorageSettings:
        return StorageSettings(
            segment_bytes=4096,
            segment_bytes_first=4096,
            tail_bytes_max=1,
            open_files_max=2,
            compaction_segments_min=1,
            compaction_segments_max=1,
        )

    # With next to no memory tail there is nothing that `recent` could promise.
    test_recent_gives_the_batch_that_holds_an_offset_without_waiting = None  # type: ignore[assignment]
    test_a_commit_is_readable_once_it_resolves = None  # type: ignore[assignment]
