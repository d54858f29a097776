"""The local engine when the disk fails: it stops rather than guess, refuses rather than lose, recovers by itself."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sealane.engine import Append
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.errors import (
    CorruptData,
    DataDirectoryInUse,
    Fenced,
    InvalidArgument,
    KeyUnavailable,
    OffsetMismatch,
    StorageFailed,
    StorageFull,
)
from tests.contract.faulty_files import FaultyFiles
from tests.contract.owners import BILLS, ORDERS, Clock, Owner, batch, numbered, payloads

KiB = 1024
SMALL = StorageSettings(
    segment_bytes=64 * KiB, segment_bytes_first=64 * KiB, space_retry_seconds=0.01, disk_free_bytes_min=0
)
UNCOMPACTED = replace(SMALL, compaction=False)


class Node:
    """An engine over faulty files that a test starts, breaks and starts again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = FaultyFiles(path)
        self.engines: list[LocalEngine] = []

    async def start(self, settings: StorageSettings = SMALL) -> LocalEngine:
        engine = await LocalEngine.start(
            self.files,
            settings=settings,
            clock=Clock(),
            entropy=os.urandom,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
        )
        self.engines.append(engine)
        return engine

    async def restart(self, settings: StorageSettings = SMALL) -> LocalEngine:
        await self.stop()
        self.files = FaultyFiles(self.path)
        return await self.start(settings)

    async def stop(self) -> None:
        while self.engines:
            await self.engines.pop().close()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path / "data")
    yield node
    await node.stop()


async def until(condition, *, seconds: float = 10) -> None:
    """Wait for the condition, with a deadline."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the engine does not announce what its chores have done
            await asyncio.sleep(0.005)


# --- fail-stop ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", ["inline", "thread"])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_after_a_failed_write_or_sync_the_engine_takes_no_more_writes_and_reads_go_on(
    node: Node, commit, operation
) -> None:
    settings = StorageSettings(commit=commit, segment_bytes=64 * KiB, segment_bytes_first=64 * KiB, compaction=False)
    engine = await node.start(settings)
    owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
    await owner.commit(numbered(3), b"j")
    await until(lambda: engine._wal.spare_ready)
    node.files.fail(operation)
    failing = owner.commit(numbered(1, 3))
    behind = bills.commit(numbered(1))
    with pytest.raises(StorageFailed, match="restart"):
        await failing
    with pytest.raises(StorageFailed):
        await behind
    syncs = node.files.done["sync"]
    for _ in range(2):
        with pytest.raises(StorageFailed):
            owner.commit(numbered(1))
    with pytest.raises(StorageFailed):
        await engine.open(BILLS)
    with pytest.raises(StorageFailed):
        await engine.trim(ORDERS, messages_before=1)
    with pytest.raises(StorageFailed):
        await engine.put("a", b"", expected=0)
    assert isinstance(engine.failure, StorageFailed)
    assert isinstance(engine.failure.__cause__, OSError)
    assert await owner.payloads() == [b"0", b"1", b"2"]
    assert await engine.read_journal(ORDERS, 0) == [(0, b"j")]
    assert node.files.done["sync"] == syncs, "a failed sync is never tried again"
    engine = await node.restart()
    owner = await Owner.of(engine)
    assert (await owner.payloads())[:3] == [b"0", b"1", b"2"]
    await owner.commit(numbered(1))


async def test_commits_that_wait_behind_a_failure_all_hear_of_it(node: Node) -> None:
    engine = await node.start(StorageSettings(commit="thread", compaction=False))
    owner = await Owner.of(engine)
    await until(lambda: engine._wal.spare_ready)
    node.files.fail("sync")
    answers = await asyncio.gather(*(owner.commit(numbered(1)) for _ in range(50)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StorageFailed}


@pytest.mark.parametrize("short_bytes", [0, 1, 40, 200, 1_000, 100_000])
async def test_a_short_write_is_cut_at_the_next_start_and_nothing_acknowledged_is_lost(
    node: Node, short_bytes: int
) -> None:
    engine = await node.start()
    owner = await Owner.of(engine)
    await owner.commit(numbered(3), b"j")
    node.files.fail("write", short_bytes=short_bytes)
    with pytest.raises(StorageFailed):
        await owner.commit(batch(bytes(2_000)))
    engine = await node.restart()
    assert engine.recovery.quarantined == []
    assert engine.recovery.unexplained == []
    assert (engine.recovery.cut_bytes > 0) == (0 < short_bytes < 2_000)
    owner = await Owner.of(engine)
    assert (await owner.payloads())[:3] == [b"0", b"1", b"2"]
    await owner.commit(numbered(1))
    engine = await node.restart()
    assert (await payloads(engine, ORDERS))[-1] == b"0"
    assert engine.recovery.cut_bytes == 0


async def test_a_disk_that_cannot_be_written_at_all_is_an_error_at_the_start(node: Node) -> None:
    node.files.fail("write")
    with pytest.raises(StorageFailed, match="cannot be written"):
        await node.start()
    assert await node.start()


async def test_a_segment_that_cannot_be_prepared_is_tried_again(node: Node) -> None:
    for number in range(3):
        node.files.fail("zero_fill", after=1 + number)
    engine = await node.start()
    await until(lambda: engine._wal.spare_ready)
    assert engine.failure is None


# --- full -----------------------------------------------------------------------------------------------------------


async def fill(owner: Owner) -> StorageFull:
    """Publish until that is refused."""
    for _ in range(10_000):
        try:
            made = Append(owner.partition, owner.epoch, batch(os.urandom(8 * KiB)), owner.offset)
            await owner.engine.commit([made])
            owner.offset += 1
        except StorageFull as full:
            return full
        await asyncio.sleep(0)
    raise AssertionError("it never filled up")


async def test_a_disk_limit_refuses_publishes_lets_acks_pass_and_recovers_by_itself(node: Node) -> None:
    limit = 8 * 64 * KiB
    settings = replace(SMALL, disk_bytes_max=limit)
    engine = await node.start(settings)
    owner = await Owner.of(engine)
    await owner.commit(numbered(1), b"first")
    full = await fill(owner)
    assert full.limit_bytes == limit
    assert "storage.disk_bytes_max" in str(full)
    assert engine.usage().bytes_used <= limit
    assert engine.usage().bytes_max == limit
    published = owner.offset
    for _ in range(20):
        await owner.commit(None, b"an ack")
    assert len(await engine.read_journal(ORDERS, 0)) == 21
    assert engine.failure is None
    await engine.trim(ORDERS, messages_before=published, journal_before=21)
    await until(lambda: engine._space.full is None)
    await owner.commit(numbered(1))
    assert await owner.payloads(published) == [b"0"]


async def test_acks_are_refused_too_once_the_reserve_is_used_up(node: Node) -> None:
    settings = replace(UNCOMPACTED, space_retry_seconds=60, disk_bytes_max=256 * KiB)
    engine = await node.start(settings)
    owner = await Owner.of(engine)
    await fill(owner)
    acks = 0
    with suppress(StorageFull):
        for _ in range(1_000):
            await engine.commit([Append(ORDERS, owner.epoch, journal=bytes(1_000), journal_offset=acks)])
            acks += 1
    assert acks < 1_000
    assert acks > 20
    assert engine.failure is None
    assert len(await engine.read_journal(ORDERS, 0)) == acks


async def test_a_full_disk_refuses_publishes_and_recovers_when_there_is_room_again(node: Node) -> None:
    engine = await node.start(UNCOMPACTED)
    owner = await Owner.of(engine)
    node.files.capacity_bytes = node.files.log_bytes() + 256 * KiB
    full = await fill(owner)
    assert "the disk" in str(full)
    assert engine.failure is None
    await owner.commit(None, b"an ack")
    node.files.capacity_bytes += 256 * KiB
    await until(lambda: engine._space.full is None)
    await owner.commit(batch(b"back"))
    assert (await owner.payloads())[-1] == b"back"


async def test_a_full_directory_can_be_opened_read_and_acked_on(node: Node) -> None:
    engine = await node.start(UNCOMPACTED)
    owner = await Owner.of(engine)
    node.files.capacity_bytes = node.files.log_bytes() + 256 * KiB
    await fill(owner)
    messages = len(await owner.payloads())
    await node.stop()
    node.files.capacity_bytes = node.files.log_bytes()
    engine = await node.start(UNCOMPACTED)
    owner = await Owner.of(engine)
    assert len(await owner.payloads()) == messages
    await fill(owner)
    await owner.commit(None, b"an ack")


async def test_a_write_that_finds_no_room_did_not_happen_and_the_engine_goes_on(node: Node) -> None:
    engine = await node.start()
    owner = await Owner.of(engine)
    await owner.commit(numbered(2))
    node.files.fail("write", code=errno.ENOSPC, short_bytes=300)
    refused = [owner.commit(numbered(1, 2)), owner.commit(numbered(1, 3))]
    for each in refused:
        with pytest.raises(StorageFull):
            await each
    assert engine.failure is None
    with pytest.raises(OffsetMismatch):
        owner.commit(numbered(1))
    owner = await Owner.of(engine)
    assert owner.opened.end == 2
    await owner.commit(numbered(1, 2))
    engine = await node.restart()
    assert await payloads(engine, ORDERS) == [b"0", b"1", b"2"]
    assert engine.recovery.quarantined == []
    assert engine.recovery.unexplained == []


async def test_a_record_larger_than_a_segment_gets_a_segment_of_its_own(node: Node) -> None:
    engine = await node.start()
    owner = await Owner.of(engine)
    large = os.urandom(300 * KiB)
    await owner.commit(batch(large))
    await owner.commit(numbered(1))
    engine = await node.restart()
    assert await payloads(engine, ORDERS) == [large, b"0"]


def test_a_disk_limit_that_leaves_no_room_to_work_in_is_refused() -> None:
    StorageSettings(segment_bytes=64 * KiB, disk_bytes_max=256 * KiB)
    with pytest.raises(InvalidArgument, match="four segments"):
        StorageSettings(segment_bytes=64 * KiB, disk_bytes_max=256 * KiB - 1)


# --- reads ----------------------------------------------------------------------------------------------------------


async def test_a_read_the_disk_cannot_serve_costs_that_entry_and_names_it(node: Node, caplog) -> None:
    engine = await node.start(StorageSettings(tail_bytes_max=1, compaction=False))
    owner = await Owner.of(engine)
    for number in range(3):
        await owner.commit(numbered(2, 2 * number))
    node.files.fail("read", after=1)
    assert await owner.payloads() == [b"0", b"1", b"4", b"5"]
    (lost,) = engine.quarantined
    assert (lost.partition, lost.span) == (ORDERS, (2, 4))
    assert "messages 2–3 are lost" in caplog.text
    opened = await engine.open(ORDERS)
    assert opened.lost == ((2, 4),)
    assert opened.end == 6


# --- who may open ---------------------------------------------------------------------------------------------------


async def test_a_second_engine_on_the_directory_is_refused_and_names_the_process(node: Node, tmp_path: Path) -> None:
    await node.start()
    with pytest.raises(DataDirectoryInUse) as refused:
        await LocalEngine.start(FaultyFiles(node.path), settings=SMALL, clock=Clock(), entropy=os.urandom)
    assert refused.value.pid == os.getpid()
    await node.restart()


async def test_a_directory_held_by_another_process_names_that_process(node: Node) -> None:
    code = (
        "import sys; from sealane.engine.local.files import DiskFiles; DiskFiles(sys.argv[1]).acquire(); "
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs on this loop
        [sys.executable, "-c", code, str(node.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataDirectoryInUse, match=f"process {holder.pid}"):
            await node.start()
        holder.stdin.close()
    await node.start()


async def test_a_missing_key_is_an_error_before_anything_is_served(node: Node) -> None:
    engine = await node.start()
    await (await Owner.of(engine)).commit(numbered(1))
    await node.stop()
    key = node.path / "master.key"
    saved = key.read_bytes()
    key.unlink()
    with pytest.raises(KeyUnavailable, match=r"master\.key is missing"):
        await node.start()
    key.write_bytes(saved)
    assert await payloads(await node.start(), ORDERS) == [b"0"]


async def test_a_wrong_key_is_an_error_before_anything_is_served(node: Node, tmp_path: Path) -> None:
    engine = await node.start()
    await (await Owner.of(engine)).commit(numbered(1))
    await node.stop()
    other = Node(tmp_path / "other")
    await other.start()
    await other.stop()
    (node.path / "master.key").write_bytes((other.path / "master.key").read_bytes())
    with pytest.raises(KeyUnavailable, match="not the key"):
        await node.start()


async def test_metadata_that_is_gone_is_not_made_anew_over_a_log(node: Node) -> None:
    engine = await node.start()
    await (await Owner.of(engine)).commit(numbered(1))
    await node.stop()
    for path in node.path.glob("meta.db*"):
        path.unlink()
    with pytest.raises(CorruptData, match=r"meta\.db is missing"):
        await node.start()


async def test_the_data_directory_is_private(node: Node) -> None:
    engine = await node.start()
    await (await Owner.of(engine)).commit(numbered(1))
    assert node.path.stat().st_mode & 0o077 == 0
    for path in node.path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_an_old_epoch_of_an_earlier_life_is_fenced(node: Node) -> None:
    old = await Owner.of(await node.start())
    engine = await node.restart()
    with pytest.raises(Fenced):
        engine.commit([old.append(numbered(1))])
