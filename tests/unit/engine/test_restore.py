"""Restoring a backup: every byte is checked, nothing is overwritten, and the result is a directory of its own."""

from __future__ import annotations

import errno
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from sealane.engine.local import DiskFiles, restore
from sealane.engine.local.backup_manifest import CopiedFile, encode_manifest, make_manifest
from sealane.engine.local.engine import EPOCHS_A_BOOT
from sealane.engine.local.files import Files
from sealane.engine.local.start import RESTORE_DRAFT
from sealane.errors import CorruptData, DataDirectoryInUse, FormatTooNew, KeyUnavailable, StorageError
from tests.contract.faulty_files import FaultyFiles, Operation
from tests.contract.owners import ORDERS, Owner, batch, numbered
from tests.unit.engine.backed_up import contents, files_under, start


@pytest.fixture
async def backup(tmp_path: Path) -> Path:
    """A backup of 40 messages, some of them compacted."""
    engine = await start(tmp_path / "data")
    owner = await Owner.of(engine)
    for number in range(40):
        await owner.commit(batch(b"%d " % number + os.urandom(400)), b"entry")
        if number == 30:
            await engine.housekeeping.compact()
    await engine.put("topics/orders", b"settings", expected=0)
    await engine.backup(tmp_path / "backup")
    await engine.close()
    return tmp_path / "backup"


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


# --- what is checked --------------------------------------------------------------------------------------------------


def test_a_flipped_bit_anywhere_is_found_and_named(backup: Path, tmp_path: Path) -> None:
    listed = sorted(files_under(backup) - {"backup.json", "master.key"})
    assert {name.partition("/")[0] for name in listed} == {"wal", "compacted", "meta.db"}
    for name in listed:
        size = (backup / name).stat().st_size
        for position in (0, size // 2, size - 1):
            flip(backup / name, position)
            with pytest.raises(CorruptData, match=f"{name} is not as it was written"):
                restore(backup, tmp_path / "restored")
            assert not (tmp_path / "restored").exists()
            flip(backup / name, position)
    restore(backup, tmp_path / "restored")


def test_all_that_is_damaged_is_named_at_once(backup: Path, tmp_path: Path) -> None:
    first, second, *_ = sorted(files_under(backup / "wal"))
    flip(backup / "wal" / first, 10)
    with (backup / "wal" / second).open("ab") as file:
        file.write(b"more")
    (backup / "meta.db").unlink()
    with pytest.raises(CorruptData) as refused:
        restore(backup, tmp_path / "restored")
    for problem in (f"{first} is not as it was written", f"{second} has", "meta.db is missing"):
        assert problem in str(refused.value)


def test_a_damaged_manifest_is_refused(backup: Path, tmp_path: Path) -> None:
    text = (backup / "backup.json").read_text()
    taken = json.loads(text)["taken_us"]
    for broken in (text[:-20], text.replace(str(taken), str(taken + 1)), text.replace("wal/0", "wal/1"), "", "[]"):
        (backup / "backup.json").write_text(broken)
        with pytest.raises(CorruptData, match=r"backup\.json is damaged"):
            restore(backup, tmp_path / "restored")
    (backup / "backup.json").write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(FormatTooNew, match="upgrade"):
        restore(backup, tmp_path / "restored")


def test_a_directory_without_a_manifest_is_no_backup(backup: Path, tmp_path: Path) -> None:
    (backup / "backup.json").unlink()
    for place in (backup, tmp_path / "nowhere"):
        with pytest.raises(StorageError, match="is not a backup"):
            restore(place, tmp_path / "restored")
    assert names(tmp_path) == {"data", "backup"}


@pytest.mark.parametrize("name", ["../outside", "wal/../../outside", "/etc/outside", "lock", "wal/deep/er"])
def test_a_manifest_cannot_lead_a_restore_astray(backup: Path, tmp_path: Path, name: str) -> None:
    manifest = make_manifest(0, master_key=False, files=(CopiedFile(name, 0, ""),), partitions=(), damaged=())
    (backup / "backup.json").write_bytes(encode_manifest(manifest))
    with pytest.raises(CorruptData, match="which no backup holds"):
        restore(backup, tmp_path / "restored")


def test_a_key_that_is_not_the_right_one_is_refused(backup: Path, tmp_path: Path) -> None:
    key = (backup / "master.key").read_bytes()
    flip(backup / "master.key", key.index(b"key ", 40) + 6)
    with pytest.raises(KeyUnavailable):
        restore(backup, tmp_path / "restored")
    (backup / "master.key").unlink()
    with pytest.raises(CorruptData, match=r"master\.key is missing"):
        restore(backup, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


# --- where to ---------------------------------------------------------------------------------------------------------


async def test_a_directory_in_use_is_refused(backup: Path, tmp_path: Path) -> None:
    engine = await start(tmp_path / "running")
    with pytest.raises(DataDirectoryInUse):
        restore(backup, tmp_path / "running")
    await engine.close()
    before = files_under(tmp_path / "running")
    with pytest.raises(StorageError, match=r"refused: it holds 'master\.key'"):
        restore(backup, tmp_path / "running")
    assert files_under(tmp_path / "running") == before


async def test_an_empty_directory_is_filled(backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "restored"
    data.mkdir()
    report = restore(backup, data)
    assert names(data) == {"lock", "master.key", "meta.db", "wal", "compacted"}
    assert len((await contents(data))[ORDERS][1]) == 40
    assert report.messages == 40
    assert not report.key_missing
    assert report.files == len(files_under(backup)) - 2


@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("made", [True, False])
def test_a_disk_that_fails_leaves_the_directory_as_it_was(
    backup: Path, tmp_path: Path, operation: Operation, made: bool
) -> None:
    data = tmp_path / "restored"
    if not made:
        data.mkdir()

    def failing(path: Path) -> Files:
        files = FaultyFiles(path)
        files.fail(operation, after=3, code=errno.ENOSPC)
        return files

    with pytest.raises(StorageError, match=r"nothing of it was left behind.*No space"):
        restore(backup, data, open_files=failing)
    assert not made or not data.exists()
    assert made or files_under(data) == {"lock"}
    restore(backup, data)


async def test_a_restore_that_was_cut_short_does_not_start_and_can_be_done_again(backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "restored"
    (data / RESTORE_DRAFT / "wal").mkdir(parents=True)
    with pytest.raises(CorruptData, match=r"cut short.*restore it again"):
        await start(data)
    restore(backup, data)
    assert len((await contents(data))[ORDERS][1]) == 40
    # Later still, in the middle of putting things in their places: nothing of it is thrown away unasked.
    (data / RESTORE_DRAFT).mkdir()
    with pytest.raises(CorruptData, match="cut short"):
        await start(data)
    with pytest.raises(StorageError, match="refused: it holds"):
        restore(backup, data)


# --- what it is -------------------------------------------------------------------------------------------------------


async def test_without_its_key_it_starts_only_once_the_key_is_there(tmp_path: Path) -> None:
    engine = await start(tmp_path / "data")
    await (await Owner.of(engine)).commit(numbered(3))
    await engine.backup(tmp_path / "backup", include_key=False)
    await engine.close()
    assert "master.key" not in names(tmp_path / "backup")
    assert restore(tmp_path / "backup", tmp_path / "restored").key_missing
    with pytest.raises(KeyUnavailable, match="is missing"):
        await start(tmp_path / "restored")
    shutil.copy(tmp_path / "data" / "master.key", tmp_path / "restored" / "master.key")
    assert (await contents(tmp_path / "restored"))[ORDERS][1] == [b"0", b"1", b"2"]


async def test_it_takes_new_messages_and_is_backed_up_itself(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "restored")
    copy = await start(tmp_path / "restored")
    owner = await Owner.of(copy)
    assert owner.offset == 40
    await owner.commit(numbered(5, 40), b"entry")
    await copy.backup(tmp_path / "second")
    await copy.close()
    restore(tmp_path / "second", tmp_path / "again")
    assert len((await contents(tmp_path / "again"))[ORDERS][1]) == 45


async def test_no_epoch_or_version_of_the_original_comes_again(backup: Path, tmp_path: Path) -> None:
    for _ in range(3):
        original = await start(tmp_path / "data")
        epoch = (await original.open(ORDERS)).epoch
        version = await original.put(f"later {epoch}", b"", expected=0)
        await original.close()
    boots = set()
    for number, chance in enumerate((0, 7)):
        restore(backup, tmp_path / f"restored{number}", entropy=partial(int.to_bytes, chance, byteorder="little"))
        copy = await start(tmp_path / f"restored{number}")
        opened = await copy.open(ORDERS)
        assert opened.epoch > epoch + 1_000 * EPOCHS_A_BOOT
        assert opened.epoch << 20 < 2**63, "a lease is numbered from here on"
        assert await copy.put("mine", b"", expected=0) > version + 1_000_000
        boots.add(opened.epoch // EPOCHS_A_BOOT)
        await copy.close()
    assert len(boots) == 2, "two restores of one backup are not the same node either"


async def test_the_original_is_not_touched_by_its_copy(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "restored")
    copy = await start(tmp_path / "restored")
    await (await Owner.of(copy)).commit(numbered(1))
    await copy.close()
    assert len((await contents(tmp_path / "data"))[ORDERS][1]) == 40
    restore(backup, tmp_path / "again")
    assert len((await contents(tmp_path / "again"))[ORDERS][1]) == 40
    assert DiskFiles(tmp_path / "backup").exists("backup.json")
