"""What was written to the simulated disk, and what is left of it after a crash or a power loss."""

from __future__ import annotations

import random

import pytest

from sealane.engine.local.files import File, Files
from tests.simulation.ends import Crashed
from tests.simulation.sectors import SECTOR_BYTES
from tests.simulation.small_disk import SEEDS, content, disk_of, make_file


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


def test_zero_filling_is_durable():
    for seed in SEEDS:
        disk = disk_of(seed)
        make_file(disk, content=b"abc").zero_fill(4096)
        disk.lose_power()
        assert content(disk) == b"abc".ljust(4096, b"\0")


def test_space_that_is_only_taken_may_be_gone_until_a_sync():
    left = set()
    for seed in SEEDS:
        disk = disk_of(seed)
        file = make_file(disk, content=b"abc")
        file.zero_fill(4096, written=False)
        if seed % 2:
            file.sync()
        disk.lose_power()
        left.add((seed % 2, content(disk)))
    whole = b"abc".ljust(4096, b"\0")
    assert {content for synced, content in left if synced} == {whole}
    assert {content for synced, content in left if not synced} >= {b"abc"}


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
