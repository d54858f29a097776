"""A read from disk takes its time, and what it reads may be trimmed meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.files import DiskFile
from tests.contract.owners import BIG, ORDERS, Clock, Owner, numbered

DEADLINE_SECONDS = 60


class HeldFiles(DiskFiles):
    """Reads of the log begin, and go on once they may."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        file = super().open(name, create=create)
        read_into = file.read_into

        def held(position: int, buffer: memoryview) -> int:
            self.begun.set()
            assert self.may_go_on.wait(DEADLINE_SECONDS)
            return read_into(position, buffer)

        file.read_into = held  # type: ignore[method-assign]
        return file


@pytest.mark.parametrize(
    ("trimmed_before", "left"), [(4, range(4, 16)), (8, range(8, 16)), (11, range(11, 16)), (16, ())]
)
async def test_what_is_trimmed_while_it_is_read_is_left_out(
    tmp_path: Path, trimmed_before: int, left: range | tuple[()]
) -> None:
    files = HeldFiles(tmp_path / "data")
    settings = StorageSettings(tail_bytes_max=1, compaction=False)
    engine = await LocalEngine.start(files, settings=settings, clock=Clock(), entropy=os.urandom)
    owner = await Owner.of(engine)
    await owner.commit(numbered(8))
    await owner.commit(numbered(8, 8))
    assert engine.recent(ORDERS, 0) is None, "it is read from disk"

    files.begun.clear()
    files.may_go_on.clear()
    reading = asyncio.ensure_future(engine.read(ORDERS, 2, bytes_max=BIG))
    assert await asyncio.to_thread(files.begun.wait, DEADLINE_SECONDS)
    await engine.trim(ORDERS, messages_before=trimmed_before)
    files.may_go_on.set()
    read = await reading
    found = [offset for stored in read for offset in range(stored.base, stored.stop)]
    assert found == list(left)
    assert [each for stored in read for each in stored.batch.payloads()] == [b"%d" % offset for offset in left]
    await engine.close()
