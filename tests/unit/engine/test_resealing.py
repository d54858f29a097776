"""After a rotation everything is sealed by the new key, without a pause, and then the old key is gone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from sealane.engine.contract import Append, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings, restore
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.key_use import key_ids_on_disk
from sealane.engine.local.metadata import Metadata
from sealane.errors import Closed, KeyUnavailable, StorageError
from sealane.message import Limits, Stamp, from_payloads
from sealane.security.records import SYSTEM_DOMAIN, Records
from tests.contract.owners import Clock
from tests.unit.engine.small_records import Note

DEADLINE_SECONDS = 60.0
SETTINGS = StorageSettings(
    segment_bytes=16_384,
    segment_bytes_first=16_384,
    compaction_segments_min=3,
    compaction_segments_max=3,
    space_retry_seconds=0.01,
)


async def engine_on(directory: Path, settings: StorageSettings = SETTINGS, *, process: bool = False) -> LocalEngine:
    return await LocalEngine.start(
        DiskFiles(directory),
        settings=settings,
        clock=Clock(),
        entropy=os.urandom,
        compactor=None if process else lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )


class Writer:
    """Appends numbered messages, each with a journal entry, to a partition of a domain."""

    def __init__(self, engine: LocalEngine, domain: str, topic: str = "orders", *, sealed: bool = True) -> None:
        self.engine = engine
        self.key = PartitionKey(domain, topic, 1, 0)
        self._sealed = sealed

    async def open(self) -> Writer:
        opened = await self.engine.open(self.key, sealed=self._sealed)
        self._epoch, self._end, self._journal_end = opened.epoch, opened.end, opened.journal_end
        return self

    async def write(self, count: int) -> None:
        for _ in range(count):
            batch = from_payloads([self.payload(self._end)], Stamp(1, os.urandom(16)), limits=Limits())
            landing = self.engine.commit(
                [Append(self.key, self._epoch, batch, self._end, b"note %d" % self._journal_end, self._journal_end)]
            )
            self._end += 1
            self._journal_end += 1
            await landing

    def payload(self, number: int) -> bytes:
        return b"MARK %s %d" % (self.key.domain.encode(), number) * 20

    async def check(self, engine: LocalEngine | None = None) -> None:
        """Everything that was written is there."""
        engine = engine or self.engine
        found: list[bytes] = []
        while stored := await engine.read(self.key, len(found), bytes_max=1 << 16):
            for each in stored:
                found += each.batch.payloads()[max(0, len(found) - each.base) :]
        assert found == [self.payload(number) for number in range(self._end)]
        journal = await engine.read_journal(self.key, 0)
        assert journal == [(number, b"note %d" % number) for number in range(self._journal_end)]


async def resealed(engine: LocalEngine) -> list[tuple[int, int]]:
    told: list[tuple[int, int]] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        await engine.keys.resealed(lambda done, total: told.append((done, total)))
    return told


def keys_on_disk(directory: Path) -> set[int]:
    """What the files of a closed directory refer to."""
    metadata = Metadata(sqlite3.connect(directory / "meta.db"), lambda: 0)
    try:
        return {key for look in key_ids_on_disk(DiskFiles(directory), metadata) for key in look()}
    finally:
        metadata.close()


def stored_keys(directory: Path) -> dict[int, str]:
    connection = sqlite3.connect(directory / "meta.db")
    try:
        return dict(connection.execute("SELECT key_id, domain FROM domain_keys WHERE wrapped IS NOT NULL").fetchall())
    finally:
        connection.close()


@pytest.mark.parametrize("process", [False, True])
async def test_all_that_the_old_key_sealed_is_sealed_by_the_new_one_and_the_old_one_is_gone(
    tmp_path: Path, process: bool
) -> None:
    engine = await engine_on(tmp_path, process=process)
    sales, shop = await Writer(engine, "sales").open(), await Writer(engine, "shop").open()
    for _ in range(20):
        await sales.write(5)
        await shop.write(2)
    old, other = engine.sealer.keyring.ensure("sales"), engine.sealer.keyring.ensure("shop")
    new = await engine.keys.rotate("sales")
    await sales.write(3)
    told = await resealed(engine)
    assert told[-1][0] <= told[-1][1]
    await sales.check()
    await shop.check()
    await engine.close()
    assert keys_on_disk(tmp_path) == {new, other}
    assert stored_keys(tmp_path) == {new: "sales", other: "shop"}
    engine = await engine_on(tmp_path)
    await sales.check(engine)
    await shop.check(engine)
    with pytest.raises(KeyUnavailable, match=f"no key {old}"):
        engine.sealer.keyring.opening_key("sales", old)
    await engine.close()


async def test_writers_go_on_while_it_is_done(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    await engine.keys.rotate("sales")
    waiting = asyncio.create_task(engine.keys.resealed())
    written = 0
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not waiting.done():
            await sales.write(1)
            written += 1
    assert written > 1
    await sales.check()
    await engine.close()


async def test_it_goes_on_by_itself_after_a_restart(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path, StorageSettings(segment_bytes=16_384, segment_bytes_first=16_384))
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    new = engine.sealer.keyring.rotate("sales")
    await engine.close()
    assert len(keys_on_disk(tmp_path)) == 1
    engine = await engine_on(tmp_path)
    await resealed(engine)
    await sales.check(engine)
    await engine.close()
    assert keys_on_disk(tmp_path) == {new} == set(stored_keys(tmp_path))


async def test_a_segment_is_not_left_behind_though_compaction_is_off(tmp_path: Path) -> None:
    settings = StorageSettings(
        segment_bytes=16_384, segment_bytes_first=16_384, compaction=False, space_retry_seconds=0.01
    )
    engine = await engine_on(tmp_path, settings)
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    new = await engine.keys.rotate("sales")
    await resealed(engine)
    await sales.check()
    await engine.close()
    assert keys_on_disk(tmp_path) == {new}


async def test_what_is_not_sealed_stays_as_it_is(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    plain = await Writer(engine, "sales", "plain", sealed=False).open()
    sales = await Writer(engine, "sales").open()
    await plain.write(50)
    await sales.write(50)
    await engine.keys.rotate("sales")
    await resealed(engine)
    await plain.check()
    await sales.check()
    await engine.close()


async def test_small_records_are_sealed_anew_and_may_be_changed_as_before(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    notes = Records("note", Note, engine, engine.sealer)
    await notes.load()
    await notes.put("a", Note("first"))
    await notes.put("b", Note("second"))
    before = await engine.get("note/a")
    await engine.keys.rotate(SYSTEM_DOMAIN)
    await resealed(engine)
    after = await engine.get("note/a")
    assert before is not None
    assert after is not None
    assert after.data != before.data
    assert after.version == before.version
    await notes.put("a", Note("changed"))
    again = Records("note", Note, engine, engine.sealer)
    await again.load()
    assert dict(again) == {"a": Note("changed"), "b": Note("second")}
    await engine.close()


async def test_a_record_that_does_not_open_keeps_its_key(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    engine.sealer.ensure(SYSTEM_DOMAIN)
    sealed = bytes(engine.sealer.seal(SYSTEM_DOMAIN, b"x", b"another place"))
    await engine.put("note/a", sealed, expected=0)
    old = engine.sealer.keyring.ensure(SYSTEM_DOMAIN)
    await engine.keys.rotate(SYSTEM_DOMAIN)
    with pytest.raises(Exception, match="note/a"):
        await engine.housekeeping._resealing.step()
    assert old in engine.sealer.keyring.outdated()
    await engine.close()


async def test_a_domain_without_a_key_has_none_to_rotate(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    with pytest.raises(KeyUnavailable, match="'sales' has no key"):
        await engine.keys.rotate("sales")
    await engine.close()


async def test_the_old_key_is_kept_while_a_file_that_needs_it_is_read(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    old = engine.sealer.keyring.ensure("sales")
    rows = list(engine._partitions[sales.key].messages.rows())
    engine._sources.pin(rows)
    await engine.keys.rotate("sales")
    waiting = asyncio.create_task(engine.keys.resealed())
    async with asyncio.timeout(DEADLINE_SECONDS):
        while engine.housekeeping._resealing.bytes_left or not engine._sources.retiring:
            await engine.get("a round trip to the disk")
        for _ in range(20):
            await engine.get("a round trip to the disk")
    assert old in engine.sealer.keyring.outdated()
    engine._sources.unpin(rows)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await waiting
    assert engine.keys.status().resealing is False
    await engine.close()


async def test_the_status_tells_keys_by_domain_with_their_age(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    sales = await Writer(engine, "sales").open()
    await sales.write(1)
    (only,) = engine.keys.status().domains
    assert (only.domain, only.older) == ("sales", 0)
    assert only.made_us is not None
    new = engine.sealer.keyring.rotate("sales")
    (only,) = engine.keys.status().domains
    assert (only.key_id, only.older) == (new, 1)
    await engine.close()


async def test_whoever_waits_for_it_hears_that_the_engine_closes(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    engine.sealer.keyring.rotate("sales")
    waiting = asyncio.create_task(engine.keys.resealed())
    await asyncio.sleep(0)
    await engine.close()
    with pytest.raises(Closed):
        await waiting


async def test_the_active_segment_ends_so_that_it_can_be_compacted(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path, StorageSettings(space_retry_seconds=0.01))
    sales = await Writer(engine, "sales").open()
    await sales.write(1)
    assert engine._wal.active is not None
    before = engine._wal.active.name
    await engine.keys.rotate("sales")
    await resealed(engine)
    assert engine._wal.active.name != before
    assert not (tmp_path / before).exists()
    await sales.check()
    await engine.close()


async def test_a_backup_made_meanwhile_opens_with_its_own_keys(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path / "data")
    sales = await Writer(engine, "sales").open()
    await sales.write(100)
    await engine.keys.rotate("sales")
    report, _ = await asyncio.gather(engine.backup(tmp_path / "copy"), resealed(engine))
    assert report.damaged == ()
    await engine.close()
    restore(tmp_path / "copy", tmp_path / "restored")
    engine = await engine_on(tmp_path / "restored")
    await sales.check(engine)
    await resealed(engine)
    await sales.check(engine)
    await engine.close()


async def test_the_master_key_is_not_exchanged_under_a_backup(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path / "data")
    sales = await Writer(engine, "sales").open()
    await sales.write(10)
    backup = asyncio.create_task(engine.backup(tmp_path / "copy"))
    await asyncio.sleep(0)
    with pytest.raises(StorageError, match="backup is under way"):
        await engine.keys.rotate_master()
    await backup
    await engine.keys.rotate_master()
    await engine.close()
    restore(tmp_path / "copy", tmp_path / "restored")
    for directory in ("data", "restored"):
        engine = await engine_on(tmp_path / directory)
        await sales.check(engine)
        await engine.close()


async def test_a_compactor_in_another_process_knows_the_new_master_key(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path, process=True)
    sales = await Writer(engine, "sales").open()
    await sales.write(50)
    await engine.keys.rotate_master()
    new = await engine.keys.rotate("sales")
    await resealed(engine)
    await sales.check()
    await engine.close()
    assert keys_on_disk(tmp_path) == {new}


async def test_a_key_that_seals_is_never_given_up(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    key_id = engine.sealer.keyring.ensure("sales")
    with pytest.raises(ValueError, match=f"key {key_id} seals"):
        engine.sealer.keyring.retire([key_id])
    await engine.close()


async def test_a_file_that_the_index_does_not_know_keeps_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await engine_on(tmp_path)
    sales = await Writer(engine, "sales").open()
    await sales.write(30)
    assert engine._wal.active is not None
    stray = tmp_path / "wal" / f"{0:020d}.wal"
    stray.write_bytes((tmp_path / engine._wal.active.name).read_bytes())
    old = engine.sealer.keyring.ensure("sales")
    await engine.keys.rotate("sales")
    loop, housekeeping = asyncio.get_running_loop(), engine.housekeeping
    async with asyncio.timeout(DEADLINE_SECONDS):
        # It has refused, and rests for half a minute.
        while housekeeping._resealing_not_before < loop.time() + 10:
            await engine.get("a round trip to the disk")
    assert "against what the index says" in caplog.text
    assert old in engine.sealer.keyring.outdated()
    stray.unlink()
    await engine.close()
