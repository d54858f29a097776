"""The segment that is prepared to follow the active one."""

from __future__ import annotations

import os
from pathlib import Path

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.segment import SPARE_NAME
from tests.contract.engine_suite import Clock, Owner, batch


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
