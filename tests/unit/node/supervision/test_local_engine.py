"""Crashes in the local engine: its chores go on, and what is only half in force stops the node."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compacting import Compacting
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.housekeeping import Housekeeping
from sealane.errors import StorageFailed
from sealane.node import Node
from sealane.node.status import health
from sealane.node.surroundings import Surroundings, wall_clock_us
from tests.unit.node.running_node import until
from tests.unit.node.supervision.planted import crash_once, crash_was_logged, expect_stopped


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Node]:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"),
        settings=StorageSettings(
            segment_bytes=4096,
            segment_bytes_first=4096,
            disk_free_bytes_min=0,
            compaction_segments_min=2,
            compaction_segments_max=2,
            space_retry_seconds=0.01,
        ),
        clock=wall_clock_us,
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )
    node = await Node.open(engine, Surroundings(wall_clock_us, os.urandom))
    yield node
    await node.close()


async def fill_segments(lane: Lane, count: int) -> None:
    for _ in range(count):
        await lane.publish_many("orders", [bytes(500)] * 7)


async def test_housekeeping_that_crashes_is_done_again(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, Housekeeping, "_save_indexes")
        await fill_segments(lane, 2)

        await until(lambda: local.supervisor.crashes["housekeeping"] == 1)
        await fill_segments(lane, 3)

    assert crash_was_logged(caplog, "housekeeping")
    assert local.engine.failure is None


async def test_a_compaction_that_crashes_is_left_for_later(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, InlineCompactor, "compact")
        await fill_segments(lane, 6)

        await until(lambda: local.supervisor.crashes["compaction"] == 1)
        await lane.publish("orders", b"goes on")

    assert crash_was_logged(caplog, "compaction")
    assert local.engine.failure is None


async def test_a_compaction_that_is_half_in_force_stops_the_node(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, Compacting, "_swap")
        with pytest.raises(StorageFailed):
            await fill_segments(lane, 1_000)

        await expect_stopped(local, lane, "compaction")
    assert "compaction" in str(local.engine.failure)


@pytest.mark.parametrize("where", ["inline", "thread"])
async def test_a_group_that_landed_and_is_not_taken_in_stops_the_node(tmp_path: Path, where, monkeypatch) -> None:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"), settings=StorageSettings(commit=where), clock=wall_clock_us, entropy=os.urandom
    )
    node = await Node.open(engine, Surroundings(wall_clock_us, os.urandom))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")
        crash_once(monkeypatch, LocalEngine, "_take_in")
        with pytest.raises(StorageFailed):
            await lane.publish("orders", b"second")

        await expect_stopped(node, lane, "commit")
    await node.close()


async def test_a_failed_sync_leaves_the_node_alive_and_not_ready(tmp_path: Path, monkeypatch) -> None:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"), settings=StorageSettings(), clock=wall_clock_us, entropy=os.urandom
    )
    node = await Node.open(engine, Surroundings(wall_clock_us, os.urandom))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")

        def failing(*args):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(engine._wal, "write", failing)
        with pytest.raises(StorageFailed):
            await lane.publish("orders", b"second")

        state = health(node)
        assert (state.live, state.ready) == (True, False)
        assert "takes no writes" in state.problems[0]
        assert node.supervisor.failure is None
    await node.close()
