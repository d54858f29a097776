from __future__ import annotations

import errno
import random

import pytest

from sealane.engine.local.files import File, Files
from tests.simulation.disk import DiskFault, SimDisk
from tests.simulation.ends import Crashed
from tests.simulation.sectors import SECTOR_BYTES

SEEDS = range(60)


def disk_of(seed=0, **options):
    return SimDisk(random.Random(seed), **options)


def make_file(disk, name="log", content=b""):
    """A file whose name and content are durable."""
    files = disk.mount()
    file = files.open(name, create=True)
    file.write_at(0, [content])
    file.sync()
    files.sync_directory("")
    return file


def content(disk, name="log"):
    file = disk.mount().open(name)
    return file.read_at(0, file.size)


def test_it_implements_the_seam_of_the_local_engine():
    files: Files = disk_of().mount()
    file: File = files.open("a", create=True)
    assert file.size == 0


def test_reads_see_what_was_written_and_stop_at_the_end_of_the_file():
    file = make_file(disk_of())
    file.write_at(3, [b"ab", memoryview(b"cd")])
    assert file.size == 7
    assert file.read_at(0, 100) == b"\0\0\0abcd"
    assert file.read_at(5, 1) == b"c"
    assert file.read_at(100, 5) == b""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_synced_survives_every_power_loss(seed):
    disk = disk_of(seed)
    data = random.Random(seed).randbytes(5000)
    file = make_file(disk, content=data)
    file.write_at(8000, [b"later"])
    disk.lose_power()
    assert content(disk)[:5000] == data


def outcomes(write_unsynced, seeds=200):
    results = set()
    for seed in range(seeds):
        disk = disk_of(seed)
        file = make_file(disk, content=b"o" * 2048)
        write_unsynced(file)
        disk.lose_power()
        results.add(content(disk))
    return results


def test_an_unsynced_overwrite_may_survive_vanish_or_be_cut_anywhere_and_in_any_order():
    results = outcomes(lambda file: file.write_at(0, [b"n" * 2048]))
    assert b"o" * 2048 in results
    assert b"n" * 2048 in results
    sectors = [[result[i : i + SECTOR_BYTES] for i in range(0, 2048, SECTOR_BYTES)] for result in results]
    whole = {b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES}
    assert any(any(sector not in whole for sector in result) for result in sectors), "some sector is torn"
    late_alone = [b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES]
    assert any(result[:2] == late_alone for result in sectors), "a later sector may arrive without an earlier one"
    torn = [sum(sector not in whole for sector in result) for result in sectors]
    assert max(torn) == 1


def test_an_unsynced_append_may_leave_a_shorter_file_or_zeros():
    results = outcomes(lambda file: file.write_at(2048, [b"n" * 1024]))
    assert all(result.startswith(b"o" * 2048) for result in results)
    assert {2048, 3072} <= {len(result) for result in results}
    assert b"o" * 2048 + b"\0" * 1024 in results, "the length may arrive without the data"


def test_an_unsynced_truncation_may_be_undone():
    results = outcomes(lambda file: file.truncate(100))
    assert {b"o" * 100, b"o" * 2048} <= results


def test_truncating_and_writing_again_without_a_sync_never_invents_bytes():
    def rewrite(file):
        file.truncate(0)
        file.write_at(0, [b"n" * 700])

    for result in outcomes(rewrite):
        assert set(result) <= set(b"on\0")


def test_a_process_that_dies_leaves_its_writes_readable_but_not_durable():
    survived = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"o" * 100)
        file.write_at(0, [b"n" * 100])
        disk.kill()
        assert content(disk) == b"n" * 100
        disk.lose_power()
        survived.add(content(disk))
    assert b"o" * 100 in survived


def test_a_dead_life_can_do_nothing_but_close():
    disk = disk_of()
    file = make_file(disk, content=b"sound")
    files = disk.mount()
    connection = files.database("meta.db")
    disk.kill()
    for attempt in (
        lambda: file.write_at(0, [b"x"]),
        lambda: file.sync(),
        lambda: file.read_at(0, 1),
        lambda: files.open("log"),
        lambda: files.remove("log"),
        lambda: files.write_secret("s", b""),
        lambda: files.database("meta.db"),
    ):
        with pytest.raises(Crashed):
            attempt()
    file.close()
    files.release()
    connection.close()
    assert content(disk) == b"sound"


# --- names ----------------------------------------------------------------------------------------------------------


def names_after(change, *, seeds=200):
    results = set()
    for seed in range(seeds):
        disk = disk_of(seed)
        make_file(disk, "old", b"content")
        change(disk.mount())
        disk.lose_power()
        results.add(tuple(disk.mount().list("")))
    return results


def test_a_new_file_may_vanish_until_its_directory_is_synced():
    def create(files):
        file = files.open("new", create=True)
        file.write_at(0, [b"x"])
        file.sync()

    def create_and_sync(files):
        create(files)
        files.sync_directory("")

    assert names_after(create) == {("old",), ("new", "old")}
    assert names_after(create_and_sync) == {("new", "old")}


def test_a_removed_file_may_come_back_until_its_directory_is_synced():
    def remove_and_sync(files):
        files.remove("old")
        files.sync_directory(".")

    assert names_after(lambda files: files.remove("old")) == {(), ("old",)}
    assert names_after(remove_and_sync) == {()}


def test_a_rename_replaces_and_is_durable_at_once():
    def replace(files):
        draft = files.open("draft", create=True)
        draft.write_at(0, [b"new"])
        draft.sync()
        files.rename("draft", "old")

    assert names_after(replace) == {("old",)}
    disk = disk_of()
    make_file(disk, "old", b"content")
    replace(disk.mount())
    disk.lose_power()
    assert content(disk, "old") == b"new"


def test_directories_are_durable_and_list_only_their_own_files():
    disk = disk_of()
    files = disk.mount()
    with pytest.raises(FileNotFoundError):
        files.open("wal/1", create=True)
    files.make_directory("wal/deep")
    for name in ("wal/2", "wal/1", "wal/deep/3", "top"):
        files.open(name, create=True)
    assert files.list("wal") == ["1", "2"]
    assert files.list("") == ["top"]
    assert files.list("nowhere") == []
    disk.lose_power()
    assert disk.mount().exists("wal/deep")
    assert not disk.mount().exists("wal/4")


def test_a_missing_file_is_an_error_and_a_removed_one_stays_usable_while_open():
    disk = disk_of()
    file = make_file(disk, content=b"abc")
    files = disk.mount()
    file = files.open("log")
    files.remove("log")
    assert file.read_at(0, 3) == b"abc"
    for attempt in (files.open, files.remove, lambda name: files.rename(name, "x")):
        with pytest.raises(FileNotFoundError):
            attempt("log")
    file.close()
    with pytest.raises(OSError, match="descriptor") as refused:
        file.read_at(0, 1)
    assert refused.value.errno == errno.EBADF


def test_a_secret_is_written_once_and_durable():
    disk = disk_of()
    files = disk.mount()
    assert files.read_secret("key") is None
    files.write_secret("key", b"secret")
    with pytest.raises(FileExistsError):
        files.write_secret("key", b"other")
    disk.lose_power()
    assert disk.mount().read_secret("key") == b"secret"


# --- faults ---------------------------------------------------------------------------------------------------------


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


def test_zero_filling_is_durable():
    for seed in SEEDS:
        disk = disk_of(seed)
        make_file(disk, content=b"abc").zero_fill(4096)
        disk.lose_power()
        assert content(disk) == b"abc".ljust(4096, b"\0")


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


def test_the_same_seed_leaves_the_same_disk():
    def left(seed):
        disk = disk_of(seed)
        file = make_file(disk, content=b"o" * 9000)
        file.write_at(100, [b"n" * 8000])
        disk.mount().open("other", create=True)
        disk.lose_power()
        return content(disk), disk.mount().list("")

    assert [left(seed) for seed in range(20)] == [left(seed) for seed in range(20)]
    assert len({left(seed)[0] for seed in range(20)}) > 5
