"""What the simulated disk does wrong when it is told to."""

from __future__ import annotations

import errno

import pytest

from tests.simulation.disk import DiskFault
from tests.simulation.ends import Crashed
from tests.simulation.small_disk import SEEDS, content, disk_of, make_file


def test_a_crash_just_after_a_sync_loses_nothing_and_ends_the_life():
    crashed = []
    disk = disk_of()
    disk.on_crash = lambda: crashed.append(True)
    file = make_file(disk, content=b"old")
    file.write_at(0, [b"new"])
    disk.arm(DiskFault("crash_after", disk.operations + 1))
    with pytest.raises(Crashed):
        file.sync()
    assert crashed == [True]
    with pytest.raises(Crashed):
        file.read_at(0, 1)
    disk.lose_power()
    assert content(disk) == b"new"


def test_a_crash_before_a_sync_may_lose_the_write():
    results = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"old")
        file.write_at(0, [b"new"])
        disk.arm(DiskFault("crash_before", disk.operations + 1))
        with pytest.raises(Crashed):
            file.sync()
        disk.lose_power()
        results.add(content(disk))
    assert {b"old", b"new"} <= results


def test_a_torn_write_leaves_a_beginning_and_ends_the_life():
    lengths = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"o" * 1000)
        disk.arm(DiskFault("torn_write", 0))
        with pytest.raises(Crashed):
            file.write_at(0, [b"n" * 1000])
        disk.lose_power()
        result = content(disk)
        lengths.add(result.count(b"n"))
        assert result == b"n" * result.count(b"n") + b"o" * (1000 - result.count(b"n"))
    assert len(lengths) > 10


def test_a_failed_sync_loses_what_was_unsynced_although_reads_and_later_syncs_look_fine():
    results = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"o" * 1024)
        file.write_at(0, [b"n" * 1024])
        disk.arm(DiskFault("sync_error", disk.operations))
        with pytest.raises(OSError, match="Input/output") as failed:
            file.sync()
        assert failed.value.errno == errno.EIO
        assert file.read_at(0, 1024) == b"n" * 1024
        file.sync()
        assert file.read_at(0, 1024) == b"n" * 1024
        disk.lose_power()
        results.add(content(disk))
    assert b"o" * 1024 in results


def test_an_append_whose_sync_failed_reads_as_zeros_after_a_power_loss():
    disk = disk_of()
    file = make_file(disk, content=b"o" * 512)
    file.write_at(512, [b"n" * 600])
    disk.arm(DiskFault("sync_error", 0))
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    disk.lose_power()
    assert content(disk) == b"o" * 512 + b"\0" * 600


def test_writing_a_lost_sector_again_makes_it_whole():
    disk = disk_of()
    file = make_file(disk, content=b"o" * 512)
    file.write_at(0, [b"n" * 512])
    disk.arm(DiskFault("sync_error", 0))
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.write_at(100, [b"!"])
    file.sync()
    disk.lose_power()
    assert content(disk) == b"n" * 100 + b"!" + b"n" * 411


def test_a_failed_write_may_have_written_a_part():
    disk = disk_of(3)
    file = make_file(disk, content=b"o" * 100)
    disk.arm(DiskFault("write_error", 0))
    with pytest.raises(OSError, match="Input/output"):
        file.write_at(0, [b"n" * 100])
    result = file.read_at(0, 100)
    assert result.rstrip(b"o") == b"n" * result.count(b"n")
    file.write_at(0, [b"x" * 100])
    assert file.read_at(0, 100) == b"x" * 100, "the fault happens once"


def test_a_full_disk_refuses_growth_and_recovers_when_there_is_room():
    disk = disk_of(capacity_bytes=1000)
    file = make_file(disk, content=b"o" * 600)
    files = disk.mount()
    file = files.open("log")
    assert files.free_bytes() == 400
    with pytest.raises(OSError, match="space") as refused:
        file.write_at(600, [b"n" * 401])
    assert refused.value.errno == errno.ENOSPC
    assert file.size == 1000, "what fitted was written"
    file.truncate(600)
    with pytest.raises(OSError, match="space"):
        file.zero_fill(1001)
    assert file.size == 600
    file.write_at(0, [b"n" * 600])
    file.write_at(600, [b"n" * 400])
    disk.capacity_bytes = 2000
    file.zero_fill(1500)
    assert files.free_bytes() == 500
    other = files.open("other", create=True)
    other.zero_fill(500)
    files.remove("log")
    assert files.free_bytes() == 1500


def test_a_bit_rots_in_synced_data_only_and_is_recorded():
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"\xff" * 2048)
        file.write_at(2048, [b"\xff" * 512])
        file.sync()
        file.write_at(0, [b"\xff" * 512])
        flip = disk.flip_bit()
        assert flip is not None
        assert disk.flips == [flip]
        assert 512 <= flip.position < 2048, "not in what is unsynced, nor in the last write"
        damaged = file.read_at(0, file.size)
        assert [i for i, byte in enumerate(damaged) if byte != 0xFF] == [flip.position]
        assert damaged[flip.position] == 0xFF ^ (1 << flip.bit)
        file.sync()
        disk.lose_power()
        assert content(disk) == damaged


def test_in_an_older_file_any_place_may_rot_and_an_empty_disk_has_none():
    disk = disk_of()
    assert disk.flip_bit() is None
    make_file(disk, "1.wal", b"\xff" * 10)
    assert disk.flip_bit() is None, "one write that nothing follows"
    make_file(disk, "2.wal", b"\xff" * 10)
    flip = disk.flip_bit()
    assert flip is not None
    assert flip.name == "1.wal"


def test_a_disk_that_lies_about_syncs_loses_what_it_promised():
    results = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"old")
        disk.lying_sync = True
        file.write_at(0, [b"new"])
        file.sync()
        disk.lose_power()
        results.add(content(disk))
    assert b"old" in results
