"""When compaction begins: after a burst and not in the middle of it, and in the end however long that lasts."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.write_pace import LOOK_SECONDS, WritePace
from tests.contract.owners import Clock, Owner, numbered

DEADLINE_SECONDS = 60.0
MIB = 1 << 20


def test_nothing_is_known_before_the_first_look_is_over() -> None:
    pace = WritePace(64 * MIB)
    assert pace.seconds_to_wait(100.0, 0) == LOOK_SECONDS
    assert pace.seconds_to_wait(100.25, 0) == LOOK_SECONDS - 0.25
    assert pace.seconds_to_wait(101.0, 64 * MIB) == 0


def test_a_burst_is_waited_for_and_its_end_is_seen() -> None:
    pace = WritePace(64 * MIB)
    written = 0
    for second in range(10):
        assert pace.seconds_to_wait(100.0 + second, written) == LOOK_SECONDS
        written += 64 * MIB + 1
    assert pace.seconds_to_wait(110.0, written) == LOOK_SECONDS
    assert pace.seconds_to_wait(111.0, written) == 0


def test_after_a_compaction_it_is_looked_at_anew() -> None:
    pace = WritePace(64 * MIB)
    pace.seconds_to_wait(100.0, 0)
    assert pace.seconds_to_wait(101.0, 0) == 0
    assert pace.seconds_to_wait(101.5, 1_000 * MIB) == LOOK_SECONDS


async def test_an_engine_compacts_what_waits_in_the_end_however_much_is_written(tmp_path: Path) -> None:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path),
        settings=StorageSettings(
            segment_bytes=8192,
            segment_bytes_first=8192,
            compaction_segments_min=2,
            compaction_segments_max=6,
            compaction_bytes_per_second_max=1,
        ),
        clock=Clock(),
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )
    try:
        owner = await Owner.of(engine)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not list((tmp_path / "compacted").rglob("*.log")):
                await owner.commit(numbered(50))
    finally:
        await engine.close()
