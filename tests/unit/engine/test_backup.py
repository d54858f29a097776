"""Backing up an engine that serves: a moment of it, whole, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sealane.engine import PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, backup_directory, restore
from sealane.engine.local.backup_manifest import read_manifest
from sealane.errors import Closed, DataDirectoryInUse, InvalidArgument, KeyUnavailable, StorageError, StorageFailed
from tests.contract.faulty_files import FaultyFiles
from tests.contract.owners import BILLS, ORDERS, Owner, batch, numbered
from tests.unit.engine.backed_up import SMALL, backup_with, contents, files_under, restored, start

PLAIN = PartitionKey("shop", "carts", 7, 2)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[LocalEngine]:
    engine = await start(tmp_path / "data")
    yield engine
    await engine.close()


async def fill(owner: Owner, count: int = 40, size: int = 400) -> None:
    """Several segments' worth, one message and one journal entry at a time; the payload tells the offset."""
    for _ in range(count):
        number = owner.offset
        await owner.commit(batch(b"%d " % number + os.urandom(size)), b"entry %d" % owner.journal_offset)


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


def offsets(payloads: list[bytes]) -> list[int]:
    return [int(payload.split()[0]) for payload in payloads]


# --- what is in it ----------------------------------------------------------------------------------------------------


async def test_everything_acknowledged_is_in_the_restored_copy(engine: LocalEngine, tmp_path: Path) -> None:
    orders, carts = await Owner.of(engine), await Owner.of(engine, PLAIN, sealed=False)
    await fill(orders)
    await fill(carts, 10)
    await engine.housekeeping.compact()
    await fill(orders, 20)
    await engine.trim(ORDERS, messages_before=15, journal_before=50)
    await engine.put("topics/orders", b"settings", expected=0)
    dropped = await Owner.of(engine, BILLS)
    await fill(dropped, 3)
    await engine.drop(BILLS)
    report = await engine.backup(tmp_path / "backup")
    found = await restored(tmp_path / "backup", tmp_path / "restored")
    assert set(found) == {ORDERS, PLAIN}
    start_offset, messages, journal = found[ORDERS]
    assert start_offset == 15
    assert offsets(messages) == list(range(15, 60))
    assert journal == [(number, b"entry %d" % number) for number in range(50, 60)]
    assert offsets(found[PLAIN][1]) == list(range(10))
    copy = await start(tmp_path / "restored")
    value = await copy.get("topics/orders")
    await copy.close()
    assert value is not None
    assert value.data == b"settings"
    assert [(p.topic, p.start, p.end, p.journal_start, p.journal_end) for p in report.partitions] == [
        ("orders", 15, 60, 50, 60),
        ("carts", 0, 10, 0, 10),
    ]
    assert report.damaged == ()
    assert report.messages == 55


async def test_the_manifest_lists_every_file_and_nothing_else_is_there(engine: LocalEngine, tmp_path: Path) -> None:
    await fill(await Owner.of(engine))
    report = await engine.backup(tmp_path / "backup")
    manifest = read_manifest(DiskFiles(tmp_path / "backup"))
    listed = {file.name for file in manifest.files}
    assert files_under(tmp_path / "backup") == listed | {"backup.json", "master.key"}
    assert (report.files, report.bytes) == (len(listed), manifest.bytes)
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "backup").rglob("*")} == {0}, "for its owner alone"
    assert names(tmp_path) == {"data", "backup"}


async def test_an_engine_in_which_nothing_was_ever_written_can_be_backed_up(
    engine: LocalEngine, tmp_path: Path
) -> None:
    report = await engine.backup(tmp_path / "backup")
    assert report.partitions == ()
    assert await restored(tmp_path / "backup", tmp_path / "restored") == {}


async def test_progress_ends_at_the_whole(engine: LocalEngine, tmp_path: Path) -> None:
    await fill(await Owner.of(engine))
    seen: list[tuple[int, int]] = []
    report = await engine.backup(tmp_path / "backup", progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (report.bytes, report.bytes)


# --- while everything goes on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(1, 12))
async def test_compaction_and_trimming_in_the_middle_take_nothing_away(
    engine: LocalEngine, tmp_path: Path, at: int
) -> None:
    orders = await Owner.of(engine)
    await fill(orders, 30)
    await engine.housekeeping.compact()
    await fill(orders, 30)

    async def go_on() -> None:
        await fill(orders, 30)
        await engine.housekeeping.compact()
        await engine.trim(ORDERS, messages_before=80, journal_before=80)
        await engine.drop(BILLS)
        await fill(orders, 30)
        await engine.housekeeping.compact()

    await Owner.of(engine, BILLS)
    await backup_with(engine, tmp_path / "backup", at=at, action=go_on)
    start_offset, messages, journal = (await restored(tmp_path / "backup", tmp_path / "restored"))[ORDERS]
    assert start_offset == 0
    assert offsets(messages) == list(range(60))
    assert [number for number, _ in journal] == list(range(60))
    in_force = {file.name for file in engine._metadata.manifest()}
    assert {f"compacted/{name}" for name in files_under(tmp_path / "data" / "compacted")} == in_force, (
        "what the backup kept is removed once it is copied"
    )


async def test_backups_under_load_are_all_whole(tmp_path: Path) -> None:
    settings = replace(SMALL, compaction_segments_min=2, compaction_segments_max=2)
    engine = await start(tmp_path / "data", settings)
    keys = [PartitionKey("default", f"topic{number}", 1, 0) for number in range(3)]
    acknowledged = dict.fromkeys(keys, 0)
    trimmed = dict.fromkeys(keys, 0)
    ended = asyncio.Event()

    async def publish(key: PartitionKey) -> None:
        owner = await Owner.of(engine, key, sealed=key != keys[0])
        for turn in itertools.count():
            if ended.is_set():
                return
            await fill(owner, 3, 200)
            acknowledged[key] = owner.offset
            if turn % 5 == 4:
                # As a partition's owner does: a snapshot is journalled, then all before it is let go.
                before = owner.journal_offset
                await owner.commit(None, b"snapshot")
                await engine.trim(key, messages_before=owner.offset // 2, journal_before=before)
                trimmed[key] = owner.offset // 2
                owner.journal_offset = before + 1

    async def make_topics() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            key = PartitionKey(f"domain{number}", "short", 1, 0)
            await fill(await Owner.of(engine, key), 2)
            await engine.drop(key)

    load = [asyncio.create_task(work) for work in (*map(publish, keys), make_topics())]
    try:
        for number in range(6):
            before, trims = dict(acknowledged), dict(trimmed)
            async with asyncio.timeout(60):
                await engine.backup(tmp_path / f"backup{number}")
            found = await restored(tmp_path / f"backup{number}", tmp_path / f"restored{number}")
            for key in keys:
                if before[key]:
                    start_offset, messages, journal = found[key]
                    assert start_offset >= trims[key]
                    assert start_offset + len(messages) >= before[key], "acknowledged before the call, and not there"
                    assert offsets(messages) == list(range(start_offset, start_offset + len(messages)))
                    assert not start_offset or journal[0][1] == b"snapshot", "trimmed past what the copy reaches"
            async with asyncio.timeout(60):
                while any(acknowledged[key] < before[key] + 6 for key in keys):  # noqa: ASYNC110 - the load goes on
                    await asyncio.sleep(0.005)
    finally:
        ended.set()
        await asyncio.gather(*load)
        await engine.close()
    source = await contents(tmp_path / "data")
    assert all(source[key][0] + len(source[key][1]) == acknowledged[key] for key in keys)


async def test_only_one_backup_is_made_at_a_time(engine: LocalEngine, tmp_path: Path) -> None:
    async def another() -> None:
        with pytest.raises(StorageError, match="another one is under way"):
            await engine.backup(tmp_path / "second")

    await backup_with(engine, tmp_path / "first", at=1, action=another)
    await engine.backup(tmp_path / "second")


async def test_an_engine_that_takes_no_more_writes_can_still_be_backed_up(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path / "data")
    engine = await start(tmp_path / "data", files=files)
    orders = await Owner.of(engine)
    await fill(orders, 5)
    files.fail("write")
    with pytest.raises(StorageFailed):
        await orders.commit(numbered(1))
    await engine.backup(tmp_path / "backup")
    await engine.close()
    messages = (await restored(tmp_path / "backup", tmp_path / "restored"))[ORDERS][1]
    assert offsets(messages) == list(range(5))


# --- what may go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("full", "something is there already"),
        ("file", "something is there already"),
        ("nowhere/backup", "is not a directory"),
        ("data/backup", "lies in the data directory"),
        ("data", "lies in the data directory"),
    ],
)
async def test_a_target_that_cannot_be_one_is_refused(
    engine: LocalEngine, tmp_path: Path, target: str, problem: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    before = names(tmp_path)
    with pytest.raises(StorageError, match=problem):
        await engine.backup(tmp_path / target)
    assert names(tmp_path) == before
    assert names(tmp_path / "full") == {"mine"}
    assert "backup" not in names(tmp_path / "data")


async def test_an_empty_directory_may_be_the_target(engine: LocalEngine, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    await engine.backup(tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")


@pytest.mark.parametrize(("operation", "code"), [("write", errno.ENOSPC), ("sync", errno.EIO)])
@pytest.mark.parametrize("after", [0, 1, 4, 7])
async def test_a_target_disk_that_fails_leaves_nothing_behind_and_harms_nobody(
    engine: LocalEngine, tmp_path: Path, operation, code: int, after: int
) -> None:
    orders = await Owner.of(engine)
    await fill(orders)

    def failing(path: Path) -> FaultyFiles:
        files = FaultyFiles(path)
        files.fail(operation, after=after, code=code)
        return files

    engine._backup.open_files = failing
    with pytest.raises(StorageError, match=f"nothing of it was left behind.*{os.strerror(code)}"):
        await engine.backup(tmp_path / "backup")
    assert names(tmp_path) == {"data"}
    engine._backup.open_files = DiskFiles
    await fill(orders, 5)
    await engine.backup(tmp_path / "backup")
    assert len((await restored(tmp_path / "backup", tmp_path / "restored"))[ORDERS][1]) == 45


async def test_a_backup_that_will_not_fit_is_refused_before_it_begins(tmp_path: Path) -> None:
    engine = await start(tmp_path / "data", replace(SMALL, disk_free_bytes_min=1 << 60))
    with pytest.raises(StorageError, match=r"bytes and .* are free there"):
        await engine.backup(tmp_path / "backup")
    await engine.close()
    assert names(tmp_path) == {"data"}


async def test_a_cancelled_backup_leaves_nothing_behind(engine: LocalEngine, tmp_path: Path) -> None:
    await fill(await Owner.of(engine))
    backup: asyncio.Task[object]

    async def cancel() -> None:
        backup.cancel()

    backup = asyncio.create_task(backup_with(engine, tmp_path / "backup", at=3, action=cancel))
    with pytest.raises(asyncio.CancelledError):
        await backup
    assert names(tmp_path) == {"data"}
    assert not engine._sources._kept
    await engine.backup(tmp_path / "backup")


async def test_closing_the_engine_gives_a_backup_up(tmp_path: Path) -> None:
    engine = await start(tmp_path / "data")
    await fill(await Owner.of(engine))
    closing: list[asyncio.Task[None]] = []

    async def close() -> None:
        closing.append(asyncio.create_task(engine.close()))

    with pytest.raises(Closed):
        await backup_with(engine, tmp_path / "backup", at=3, action=close)
    await closing[0]
    assert names(tmp_path) == {"data"}
    with pytest.raises(Closed):
        await engine.backup(tmp_path / "backup")


async def test_what_a_killed_backup_left_is_cleared_by_the_next(engine: LocalEngine, tmp_path: Path) -> None:
    left = tmp_path / ".backup.unfinished"
    (left / "wal").mkdir(parents=True)
    (left / "wal" / "00000000000000000009.wal").write_bytes(b"half")
    (left / "lock").write_bytes(b"1\n")
    await engine.backup(tmp_path / "backup")
    assert names(tmp_path) == {"data", "backup"}
    assert await restored(tmp_path / "backup", tmp_path / "restored") == {}


async def test_a_backup_that_another_process_is_making_is_left_alone(engine: LocalEngine, tmp_path: Path) -> None:
    theirs = DiskFiles(tmp_path / ".backup.unfinished")
    theirs.acquire()
    try:
        with pytest.raises(StorageError, match=f"process {os.getpid()} is making one there"):
            await engine.backup(tmp_path / "backup")
    finally:
        theirs.release()


async def test_damage_in_the_source_is_copied_and_told(engine: LocalEngine, tmp_path: Path) -> None:
    orders = await Owner.of(engine)
    await fill(orders)
    await engine.housekeeping.compact()
    await fill(orders)
    damaged = [sorted((tmp_path / "data" / "compacted").rglob("*.messages.*"))[0]]
    damaged += sorted((tmp_path / "data" / "wal").glob("*.wal"))[:1]
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[300] ^= 1
        path.write_bytes(bytes(data))
    report = await engine.backup(tmp_path / "backup")
    names = {str(path.relative_to(tmp_path / "data")) for path in damaged}
    assert {sentence.partition(":")[0] for sentence in report.damaged} == names
    assert restore(tmp_path / "backup", tmp_path / "restored").damaged == report.damaged


async def test_a_missing_key_is_told_before_it_is_missed(engine: LocalEngine, tmp_path: Path) -> None:
    await fill(await Owner.of(engine), 1)
    (tmp_path / "data" / "master.key").rename(tmp_path / "elsewhere")
    with pytest.raises(KeyUnavailable, match="without the key"):
        await engine.backup(tmp_path / "backup")
    assert not (await engine.backup(tmp_path / "backup", include_key=False)).key_included


def test_a_backup_needs_some_speed() -> None:
    replace(SMALL, backup_bytes_per_second_max=1)
    with pytest.raises(InvalidArgument, match="backup_bytes_per_second_max"):
        replace(SMALL, backup_bytes_per_second_max=0)


# --- a directory that no process holds --------------------------------------------------------------------------------


async def test_a_directory_that_nobody_holds_is_backed_up_as_it_lies_there(tmp_path: Path) -> None:
    engine = await start(tmp_path / "data")
    orders = await Owner.of(engine)
    await fill(orders, 30)
    await engine.housekeeping.compact()
    await fill(orders, 10)
    with pytest.raises(DataDirectoryInUse):
        backup_directory(tmp_path / "data", tmp_path / "backup")
    await engine.close()
    before = files_under(tmp_path / "data")
    report = backup_directory(tmp_path / "data", tmp_path / "backup")
    assert files_under(tmp_path / "data") == before
    assert [(p.start, p.end) for p in report.partitions] == [(0, 40)]
    assert offsets((await restored(tmp_path / "backup", tmp_path / "restored"))[ORDERS][1]) == list(range(40))


async def test_a_torn_write_at_the_end_of_it_is_nobodys_message(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path / "data")
    engine = await start(tmp_path / "data", files=files)
    orders = await Owner.of(engine)
    await fill(orders, 3)
    files.fail("write", short_bytes=500)
    with pytest.raises(StorageFailed):
        await orders.commit(batch(bytes(1_000)))
    with suppress(StorageError):
        await engine.close()
    report = backup_directory(tmp_path / "data", tmp_path / "backup")
    assert [(p.start, p.end) for p in report.partitions] == [(0, 3)]
    assert report.damaged == ()
    restore(tmp_path / "backup", tmp_path / "restored")
    copy = await start(tmp_path / "restored")
    assert copy.recovery.cut_bytes > 0
    owner = await Owner.of(copy)
    assert offsets(await owner.payloads()) == [0, 1, 2]
    await owner.commit(numbered(1, 3))
    await copy.close()


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is not a Sealane data directory"):
        backup_directory(tmp_path / "nowhere", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []
