"""What is sealed is nowhere on disk in the clear: not in the log, its indexes, compacted files or metadata."""

from __future__ import annotations

import os
import time

import pytest

from sealane.engine.contract import Append, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.errors import KeyUnavailable
from sealane.message import Limits, Row, Stamp, from_rows
from sealane.security.at_rest.keys import MASTER_KEY_FILE, master_key_text

ORDERS = PartitionKey("default", "orders", 1, 0)
MARKERS = {
    "payload": b"MARK-payload",
    "key": b"MARK-key",
    "name": b"mark-name",
    "value": b"MARK-value",
    "note": b"MARK-note",
}
SETTINGS = StorageSettings(segment_bytes=8192, segment_bytes_first=8192, compaction_segments_min=1_000)


def now_us() -> int:
    return time.time_ns() // 1000


async def engine_on(directory) -> LocalEngine:
    return await LocalEngine.start(
        DiskFiles(directory),
        settings=SETTINGS,
        clock=now_us,
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )


def marked_batch():
    row = Row(
        MARKERS["payload"] * 20,
        key=MARKERS["key"],
        headers={MARKERS["name"].decode(): MARKERS["value"].decode()},
    )
    return from_rows([row] * 10, Stamp(now_us(), os.urandom(16)), limits=Limits())


async def publish(engine: LocalEngine, *, sealed: bool, batches: int = 12) -> None:
    opened = await engine.open(ORDERS, sealed=sealed)
    for number in range(batches):
        batch = marked_batch()
        await engine.commit(
            [
                Append(
                    ORDERS,
                    opened.epoch,
                    batch,
                    opened.end + number * len(batch),
                    MARKERS["note"],
                    opened.journal_end + number,
                )
            ]
        )


def found_on_disk(directory) -> set[str]:
    content = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert content
    return {name for name, marker in MARKERS.items() if any(marker in data for data in content)}


def kinds_on_disk(directory) -> set[str]:
    return {path.suffix for path in directory.rglob("*") if path.is_file()}


async def compacted(engine: LocalEngine) -> None:
    assert engine.housekeeping is not None
    while not any(segment.indexed for segment in engine.housekeeping._closed):
        engine.housekeeping.wake()
        await engine.get("wait")
    assert await engine.housekeeping.compact() is not None


async def test_a_sealed_topic_leaves_no_marker_on_disk_before_and_after_compaction(tmp_path):
    engine = await engine_on(tmp_path)
    await publish(engine, sealed=True)
    assert found_on_disk(tmp_path) == set()
    await compacted(engine)
    await publish(engine, sealed=True)
    assert found_on_disk(tmp_path) == set()
    assert {".wal", ".log", ".db"} <= kinds_on_disk(tmp_path)
    read = await engine.read(ORDERS, 0, bytes_max=1 << 20)
    assert read[0].batch.payloads()[0] == MARKERS["payload"] * 20
    await engine.close()
    assert found_on_disk(tmp_path) == set()


async def test_an_unsealed_topic_shows_its_markers_so_the_search_is_worth_something(tmp_path):
    engine = await engine_on(tmp_path)
    await publish(engine, sealed=False)
    assert found_on_disk(tmp_path) == set(MARKERS)
    await engine.close()


async def test_the_master_key_is_readable_by_its_owner_alone(tmp_path):
    await (await engine_on(tmp_path)).close()
    assert (tmp_path / MASTER_KEY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [None, master_key_text(bytes(32)), b"garbage"])
async def test_without_the_right_key_nothing_is_served(tmp_path, content):
    engine = await engine_on(tmp_path)
    await publish(engine, sealed=True, batches=1)
    await engine.close()
    (tmp_path / MASTER_KEY_FILE).unlink()
    if content is not None:
        (tmp_path / MASTER_KEY_FILE).write_bytes(content)
    with pytest.raises(KeyUnavailable, match=r"master\.key"):
        await engine_on(tmp_path)


async def test_what_was_compacted_reads_the_same_after_a_restart(tmp_path):
    engine = await engine_on(tmp_path)
    await publish(engine, sealed=True)
    before = [
        (s.base + i, p)
        for s in await engine.read(ORDERS, 0, bytes_max=1 << 24)
        for i, p in enumerate(s.batch.payloads())
    ]
    journal = await engine.read_journal(ORDERS, 0)
    await compacted(engine)
    for _ in range(2):
        after = [
            (s.base + i, p)
            for s in await engine.read(ORDERS, 0, bytes_max=1 << 24)
            for i, p in enumerate(s.batch.payloads())
        ]
        assert after == before
        assert await engine.read_journal(ORDERS, 0) == journal
        await engine.close()
        engine = await engine_on(tmp_path)
    opened = await engine.open(ORDERS)
    assert (opened.start, opened.end, opened.lost) == (0, 120, ())
    await engine.close()
