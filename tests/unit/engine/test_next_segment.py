"""The segment that is prepared to follow the active one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.files import DiskFile
from sealane.engine.local.segment import SPARE_NAME
from tests.contract.owners import Clock, Owner, batch
from tests.unit.node.running_node import until


class WatchedFiles(DiskFiles):
    """Notes, whenever the prepared segment gets its name, whether another could be begun under the old one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.engine: LocalEngine | None = None
        self.taken: list[bool] = []

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        if old == SPARE_NAME and self.engine is not None:
            self.taken.append(self.engine._wal.spare_ready)


async def test_the_next_one_is_not_prepared_while_the_last_one_gets_its_name(tmp_path: Path) -> None:
    files = WatchedFiles(tmp_path / "data")
    settings = StorageSettings(segment_bytes=4096, segment_bytes_first=4096, compaction=False)
    engine = await LocalEngine.start(files, settings=settings, clock=Clock(), entropy=os.urandom)
    files.engine = engine
    owner = await Owner.of(engine)
    while len(files.taken) < 3:
        await owner.commit(batch(bytes(500)))
    await engine.close()
    assert all(files.taken)


class PreparingFiles(DiskFiles):
    """Notes how each part of a segment was prepared: with zeros written, or its space only taken."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.written: list[bool] = []

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        file = super().open(name, create=create)
        if name != SPARE_NAME:
            return file
        zero_fill = file.zero_fill

        def watched(length: int, *, written: bool = True) -> None:
            if length > file.size:
                self.written.append(written)
            zero_fill(length, written=written)

        file.zero_fill = watched  # type: ignore[method-assign]
        return file


@pytest.mark.parametrize(("payload_bytes", "written"), [(500, True), (200_000, False)])
async def test_zeros_are_written_ahead_of_small_records_and_not_of_large_ones(
    tmp_path: Path, payload_bytes: int, written: bool
) -> None:
    files = PreparingFiles(tmp_path / "data")
    settings = StorageSettings(segment_bytes=1 << 20, segment_bytes_first=1 << 20, compaction=False)
    engine = await LocalEngine.start(files, settings=settings, clock=Clock(), entropy=os.urandom)
    owner = await Owner.of(engine)
    while not files.written or files.written[-1] is not written:
        await owner.commit(batch(bytes(payload_bytes)))
    fills = len(files.written)
    while len(files.written) < fills + 2:
        await owner.commit(batch(bytes(payload_bytes)))
    assert files.written[fills:] == [written] * len(files.written[fills:])
    await engine.close()


async def test_large_records_after_small_ones_find_their_space_taken_in_advance(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path / "data")
    settings = StorageSettings(segment_bytes=1 << 20, segment_bytes_first=4096, compaction=False)
    engine = await LocalEngine.start(files, settings=settings, clock=Clock(), entropy=os.urandom)
    owner = await Owner.of(engine)
    await owner.commit(batch(b"small"))
    await until(lambda: engine._wal.spare_ready)
    # The next segment is prepared, and too short for what comes.
    capacities = []
    for _ in range(64):
        await owner.commit(batch(bytes(64 << 10)))
        segment = engine._wal.active
        assert segment is not None
        assert (tmp_path / "data" / segment.name).stat().st_size >= segment.capacity
        capacities.append(segment.capacity)
    assert capacities[-1] == settings.segment_bytes
    assert engine.usage().bytes_used >= sum(path.stat().st_size for path in (tmp_path / "data/wal").glob("*.wal"))
    await engine.close()


async def test_only_the_newest_segments_stay_in_the_page_cache(tmp_path: Path) -> None:
    let_go: list[str] = []

    class Files(DiskFiles):
        def let_go(self, name: str) -> None:
            let_go.append(name)
            super().let_go(name)

    settings = StorageSettings(
        segment_bytes=4096, segment_bytes_first=4096, compaction=False, cached_bytes_max=3 * 4096
    )
    engine = await LocalEngine.start(Files(tmp_path / "data"), settings=settings, clock=Clock(), entropy=os.urandom)
    owner = await Owner.of(engine)
    while len(let_go) < 3:
        await owner.commit(batch(bytes(500)))
    names = [f"wal/{name}" for name in DiskFiles(tmp_path / "data").list("wal") if name.endswith(".wal")]
    await engine.close()
    assert let_go == names[: len(let_go)]
    assert len(names) - len(let_go) >= 3
