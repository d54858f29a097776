"""Which names are on the simulated disk after a power loss, and what may be done with them."""

from __future__ import annotations

import errno

import pytest

from tests.simulation.small_disk import content, disk_of, make_file


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
