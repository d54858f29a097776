"""What an owner sees after a crash: nothing acknowledged is gone, and what the disk has lost is named."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from sealane.engine import Span
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.segment import scan
from tests.contract.owners import BILLS, ORDERS, Clock, Owner, batch, numbered, payloads
from tests.unit.engine.test_recovery import format_1

SMALL = StorageSettings(segment_bytes=16 * 1024, segment_bytes_first=16 * 1024, compaction=False)


class Machine:
    """Starts engines, and takes the disk as a crash would leave it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lives = 0
        self.engine: LocalEngine | None = None

    @property
    def data(self) -> Path:
        return self.directory / f"life-{self.lives}"

    async def start(self, settings: StorageSettings = SMALL) -> LocalEngine:
        self.engine = await LocalEngine.start(
            DiskFiles(self.data),
            settings=settings,
            clock=Clock(),
            entropy=os.urandom,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
        )
        return self.engine

    async def crash(self) -> None:
        """The disk as it is now, without the engine's last words, becomes the next life's."""
        before = self.data
        if self.engine is not None:
            # Copying takes a while, in which chores must not move files about.
            await self.engine.housekeeping.close()
        self.lives += 1
        shutil.copytree(before, self.data)
        await self.stop()

    async def stop(self) -> None:
        if self.engine is not None:
            await self.engine.close()
            self.engine = None

    def segments(self) -> list[Path]:
        return sorted((self.data / "wal").glob("*.wal"))

    def flip(self, path: Path, position: int) -> None:
        content = bytearray(path.read_bytes())
        content[position] ^= 0x40
        path.write_bytes(content)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    await machine.stop()


def bodies(path: Path) -> list[tuple[tuple, int]]:
    """Every entry of a segment with the position of its body."""
    return [body for found in scan(path.read_bytes(), f"wal/{path.name}").records for body in found.bodies()]


async def test_after_a_crash_everything_acknowledged_is_there(machine: Machine) -> None:
    engine = await machine.start()
    for life in range(3):
        owner = await Owner.of(engine)
        assert owner.opened.end == 500 * life
        for number in range(50):
            await owner.commit(numbered(10, 500 * life + 10 * number), b"%d" % number)
        await machine.crash()
        engine = await machine.start()
    assert await payloads(engine, ORDERS) == [b"%d" % number for number in range(1_500)]
    assert len(await engine.read_journal(ORDERS, 0)) == 150
    assert engine.recovery.quarantined == []
    assert engine.recovery.segments_trusted > 0


async def test_groups_past_the_page_cache_and_small_ones_between_them_are_all_there_after_a_crash(
    machine: Machine,
) -> None:
    settings = StorageSettings(tail_bytes_max=1, compaction=False)
    random = Random(7)
    expected: list[bytes] = []
    for _ in range(3):
        owner = await Owner.of(await machine.start(settings))
        assert await owner.payloads() == expected
        for size in (100, 200_000, 70_000, 1_000, 500_000, 65_536, 10, 900_000):
            made = [random.randbytes(size) for _ in range(random.choice((1, 3)))]
            await owner.commit(batch(*made), b"journal")
            expected += made
        assert await owner.payloads() == expected
        await machine.crash()
    engine = await machine.start(settings)
    assert await payloads(engine, ORDERS) == expected
    assert engine.recovery.quarantined == []


async def test_a_flipped_bit_costs_one_entry_and_its_owner_is_told_which(machine: Machine) -> None:
    engine = await machine.start()
    owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
    for number in range(10):
        await engine.commit([owner.append(numbered(5, 5 * number), b"%d" % number), bills.append(numbered(1, number))])
    await machine.crash()
    (path,) = machine.segments()
    _, position = next(each for each in bodies(path) if each[0][2] == ORDERS and each[0][4] == 20)
    machine.flip(path, position + 30)
    engine = await machine.start()
    owner = await Owner.of(engine)
    assert owner.opened.lost == (Span(20, 25),)
    assert owner.opened.journal_lost == ()
    assert owner.opened.end == 50
    assert await owner.payloads() == [b"%d" % number for number in range(50) if not 20 <= number < 25]
    assert await owner.payloads(22) == [b"%d" % number for number in range(25, 50)]
    assert len(await payloads(engine, BILLS)) == 10
    assert len(await engine.read_journal(ORDERS, 0)) == 10
    await owner.commit(numbered(1, 50))
    await machine.crash()
    engine = await machine.start()
    assert (await Owner.of(engine)).opened.lost == (Span(20, 25),)


async def test_damage_after_opening_is_found_by_the_read_that_meets_it(machine: Machine) -> None:
    engine = await machine.start(StorageSettings(tail_bytes_max=1, compaction=False))
    for sealed, partition in ((True, ORDERS), (False, BILLS)):
        owner = await Owner.of(engine, partition, sealed=sealed)
        for number in range(4):
            await owner.commit(numbered(5, 5 * number), b"%d" % number)
        for path in machine.segments():
            for entry, position in bodies(path):
                if (entry[2], entry[4]) in ((partition, 5), (partition, 3)):
                    machine.flip(path, position)
        assert await owner.payloads() == [b"%d" % number for number in range(20) if not 5 <= number < 10]
        assert [number for number, _ in await engine.read_journal(partition, 0)] == [0, 1, 2]
        opened = await engine.open(partition)
        assert (opened.lost, opened.journal_lost) == ((Span(5, 10),), (Span(3, 4),))
    assert len(engine.quarantined) == 4


async def test_damage_to_the_last_record_before_a_clean_close_is_known_for_what_it_is(machine: Machine) -> None:
    owner = await Owner.of(await machine.start())
    await owner.commit(numbered(5))
    await machine.stop()
    (path,) = machine.segments()
    machine.flip(path, bodies(path)[-1][1])
    engine = await machine.start()
    assert engine.recovery.cut_bytes == 0
    owner = await Owner.of(engine)
    assert (owner.opened.end, owner.opened.lost) == (5, (Span(0, 5),))
    await owner.commit(numbered(1, 5))
    assert await owner.payloads() == [b"5"]


async def test_a_commit_across_partitions_that_was_torn_is_in_none_of_them(machine: Machine) -> None:
    engine = await machine.start()
    owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
    await engine.commit([owner.append(numbered(1)), bills.append(numbered(1))])
    await engine.commit([owner.append(numbered(1, 1)), bills.append(numbered(1, 1))])
    await machine.crash()
    (path,) = machine.segments()
    _, position = bodies(path)[-1]
    content = path.read_bytes()
    path.write_bytes(content[:position].ljust(len(content), b"\0"))
    engine = await machine.start()
    assert engine.recovery.cut_bytes > 0
    assert await payloads(engine, ORDERS) == [b"0"]
    assert await payloads(engine, BILLS) == [b"0"]


async def test_a_directory_of_format_1_is_read_and_goes_on_in_the_current_format(machine: Machine) -> None:
    from sealane.message import encode

    await machine.start()
    await machine.stop()
    for path in machine.segments():
        path.unlink()
    old = machine.data / "wal" / f"{1:020d}.wal"
    old.write_bytes(format_1(1, encode(numbered(1)), time_seconds=1_600_000_000, offset=0))
    engine = await machine.start()
    owner = await Owner.of(engine)
    assert owner.opened.end == 1
    await owner.commit(numbered(1, 1), b"j")
    assert await owner.payloads() == [b"0", b"1"]
    assert await engine.offset_at(ORDERS, 1_600_000_000_000_000) == 0
    assert await engine.offset_at(ORDERS, 1_600_000_001_000_000) == 1
    await machine.stop()
    engine = await machine.start()
    assert await payloads(engine, ORDERS) == [b"0", b"1"]
    versions = [int.from_bytes(path.read_bytes()[8:10], "little") for path in machine.segments()]
    assert versions == [1, 2]


async def test_segments_of_which_nothing_is_needed_are_removed_and_offsets_go_on(machine: Machine) -> None:
    engine = await machine.start()
    owner = await Owner.of(engine)
    for number in range(40):
        await owner.commit(numbered(100, 100 * number), b"%d" % number)
    assert len(machine.segments()) > 3
    await engine.trim(ORDERS, messages_before=4_000, journal_before=40)
    await machine.stop()
    engine = await machine.start()
    await machine.stop()
    assert len(machine.segments()) == 1
    engine = await machine.start()
    owner = await Owner.of(engine)
    assert (owner.opened.start, owner.opened.end, owner.opened.journal_end) == (4_000, 4_000, 40)
    await owner.commit(numbered(1))


async def test_what_a_crash_left_half_done_is_tidied_up(machine: Machine) -> None:
    engine = await machine.start()
    await (await Owner.of(engine)).commit(numbered(1))
    await machine.crash()
    wal = machine.data / "wal"
    for name in (f"{99:020d}.wal.idx", f"{1:020d}.wal.idx.draft"):
        (wal / name).write_bytes(b"left behind")
    engine = await machine.start()
    assert await payloads(engine, ORDERS) == [b"0"]
    assert not list(wal.glob("*.draft"))
    assert not (wal / f"{99:020d}.wal.idx").exists()


async def test_compaction_keeps_every_offset_and_survives_restarts(machine: Machine) -> None:
    settings = StorageSettings(
        segment_bytes=16 * 1024,
        segment_bytes_first=16 * 1024,
        compaction_segments_min=1,
        compaction_segments_max=1,
        tail_bytes_max=1,
    )
    engine = await machine.start(settings)
    owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS, sealed=False)
    for number in range(60):
        both = [owner.append(numbered(50, 50 * number), b"%d" % number), bills.append(numbered(20, 20 * number))]
        await engine.commit(both)
    await engine.trim(ORDERS, messages_before=120, journal_before=10)
    for _ in range(3):
        assert await payloads(engine, ORDERS, 120) == [b"%d" % number for number in range(120, 3_000)]
        assert await payloads(engine, BILLS) == [b"%d" % number for number in range(1_200)]
        assert [number for number, _ in await engine.read_journal(ORDERS, 0)] == list(range(10, 60))
        assert (await engine.open(ORDERS)).lost == ()
        await machine.crash()
        engine = await machine.start(settings)
    assert list((machine.data / "compacted").rglob("*.log"))


async def test_a_segment_that_comes_back_after_compaction_replaced_it_is_not_read_twice(machine: Machine) -> None:
    engine = await machine.start()
    owner = await Owner.of(engine)
    for number in range(40):
        await owner.commit(numbered(100, 100 * number), b"%d" % number)
    await machine.stop()
    returning = machine.segments()[1]
    content = returning.read_bytes()
    settings = StorageSettings(
        segment_bytes=16 * 1024, segment_bytes_first=16 * 1024, compaction_segments_min=1, compaction_segments_max=1
    )
    engine = await machine.start(settings)
    while returning.exists():  # noqa: ASYNC110 - compaction does not announce its end
        await asyncio.sleep(0.005)
    await machine.stop()
    returning.write_bytes(content)
    engine = await machine.start()
    assert await payloads(engine, ORDERS) == [b"%d" % number for number in range(4_000)]
    assert [number for number, _ in await engine.read_journal(ORDERS, 0)] == list(range(40))
    assert (await engine.open(ORDERS)).lost == ()
