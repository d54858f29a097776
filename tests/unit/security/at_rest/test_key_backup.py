"""The master key is kept elsewhere, with a passphrase or without, and put back only where it belongs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

import sealane
from sealane.engine.local.key_files import back_up_key, needs_passphrase, restore_key
from sealane.errors import AlreadyExists, FormatTooNew, InvalidArgument, KeyUnavailable, StorageError
from sealane.security.at_rest import key_backup
from sealane.security.at_rest.key_backup import PASSPHRASE_CHARS_MIN, KeyBackup, make_backup, open_backup, read_backup
from sealane.security.at_rest.master_key import MASTER_KEY_FILE, master_key_text

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quick_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_backup, "ARGON2_MEMORY_KIB", 64)
    monkeypatch.setattr(key_backup, "ARGON2_ITERATIONS", 1)


def backup(master: bytes, passphrase: str | None = None) -> bytes:
    return make_backup(master, passphrase, made_us=1, entropy=os.urandom)


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_what_is_backed_up_reads_back(passphrase: str | None) -> None:
    master = os.urandom(32)
    content = backup(master, passphrase)
    read = read_backup(content, "f")
    assert read.has_passphrase is (passphrase is not None)
    assert open_backup(read, passphrase, "f") == master
    assert (master.hex().encode() in content) is (passphrase is None)
    assert master.hex() not in repr(read)


def test_a_wrong_passphrase_and_none_are_refused() -> None:
    read = read_backup(backup(os.urandom(32), PASSPHRASE), "f")
    with pytest.raises(KeyUnavailable, match="passphrase does not open f"):
        open_backup(read, PASSPHRASE + "r", "f")
    with pytest.raises(KeyUnavailable, match="sealed by a passphrase"):
        open_backup(read, None, "f")


def test_a_passphrase_that_is_too_short_is_refused() -> None:
    backup(os.urandom(32), "x" * PASSPHRASE_CHARS_MIN)
    with pytest.raises(InvalidArgument, match="passphrase"):
        backup(os.urandom(32), "x" * (PASSPHRASE_CHARS_MIN - 1))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff\xfe", b"[1]", b'{"x": ' + b"[" * 3_000, master_key_text(bytes(32))]
)
def test_what_is_no_backup_is_refused(content: bytes) -> None:
    with pytest.raises(KeyUnavailable, match="is not a backup"):
        read_backup(content, "f")


def test_a_backup_with_another_sum_is_refused_whatever_is_in_it() -> None:
    content = re.sub(rb'"sum": "[0-9a-f]*"', '"sum": "é"'.encode(), backup(os.urandom(32), None))
    with pytest.raises(KeyUnavailable, match="is damaged"):
        read_backup(content, "f")


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_a_changed_backup_is_refused(passphrase: str | None) -> None:
    content = backup(bytes(32), passphrase)
    read = msgspec.json.decode(content, type=KeyBackup)
    changed = msgspec.json.encode(msgspec.structs.replace(read, check="00" * 16))
    with pytest.raises(KeyUnavailable, match="damaged"):
        read_backup(changed, "f")


def test_a_newer_backup_is_refused() -> None:
    read = msgspec.json.decode(backup(bytes(32)), type=KeyBackup)
    with pytest.raises(FormatTooNew, match="upgrade Sealane"):
        read_backup(msgspec.json.encode(msgspec.structs.replace(read, format=2)), "f")


@pytest.mark.parametrize(
    "cost",
    [
        {"memory_kib": key_backup.ARGON2_MEMORY_KIB_MAX + 1},
        {"iterations": key_backup.ARGON2_ITERATIONS_MAX + 1},
        {"iterations": 0},
        {"lanes": 0},
        {"kdf": "none"},
    ],
)
def test_a_backup_that_asks_for_absurd_work_is_refused(cost: dict[str, int | str]) -> None:
    read = msgspec.json.decode(backup(bytes(32), PASSPHRASE), type=KeyBackup)
    assert read.sealed is not None
    greedy = msgspec.structs.replace(read, sealed=msgspec.structs.replace(read.sealed, **cost))
    with pytest.raises(KeyUnavailable):
        open_backup(greedy, PASSPHRASE, "f")


# --- of a data directory ----------------------------------------------------------------------------------------------


async def directory_with_data(path: Path) -> Path:
    async with sealane.embedded(path) as lane:
        await lane.publish("orders", b"hello")
    return path


async def opens(path: Path) -> bool:
    async with sealane.embedded(path) as lane:
        return (await lane.describe_topic("orders")).partitions[0].end == 1


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
async def test_a_lost_key_is_put_back(tmp_path: Path, passphrase: str | None) -> None:
    data, kept = await directory_with_data(tmp_path / "data"), tmp_path / "kept"
    back_up_key(data, kept, passphrase, made_us=1)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert needs_passphrase(kept) is (passphrase is not None)
    (data / MASTER_KEY_FILE).unlink()
    assert restore_key(data, kept, passphrase) is None
    assert (data / MASTER_KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert await opens(data)


async def test_a_running_node_minds_neither(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path / "data") as lane:
        await lane.publish("orders", b"hello")
        back_up_key(tmp_path / "data", tmp_path / "kept", None, made_us=1)
        (tmp_path / "data" / MASTER_KEY_FILE).unlink()
        restore_key(tmp_path / "data", tmp_path / "kept", None)
        await lane.publish("more", b"hello")
    assert await opens(tmp_path / "data")


async def test_a_wrong_key_in_its_place_is_put_aside(tmp_path: Path) -> None:
    data, kept = await directory_with_data(tmp_path / "data"), tmp_path / "kept"
    back_up_key(data, kept, None, made_us=1)
    wrong = master_key_text(os.urandom(32))
    (data / MASTER_KEY_FILE).write_bytes(wrong)
    aside = restore_key(data, kept, None)
    assert aside is not None
    assert aside.read_bytes() == wrong
    assert await opens(data)


async def test_a_right_key_is_never_replaced(tmp_path: Path) -> None:
    data, kept = await directory_with_data(tmp_path / "data"), tmp_path / "kept"
    back_up_key(data, kept, None, made_us=1)
    with pytest.raises(AlreadyExists, match="nothing to restore"):
        restore_key(data, kept, None)


async def test_the_key_of_another_directory_is_refused(tmp_path: Path) -> None:
    data, other = await directory_with_data(tmp_path / "data"), await directory_with_data(tmp_path / "other")
    back_up_key(other, tmp_path / "kept", None, made_us=1)
    (data / MASTER_KEY_FILE).unlink()
    with pytest.raises(KeyUnavailable, match="another directory"):
        restore_key(data, tmp_path / "kept", None)
    assert not (data / MASTER_KEY_FILE).exists()


async def test_a_backup_from_before_the_master_key_was_exchanged_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with sealane.embedded(data) as lane:
        await lane.publish("orders", b"hello")
        back_up_key(data, tmp_path / "kept", None, made_us=1)
        await lane.administer("key.rotate_master")
    assert await opens(data)
    (data / MASTER_KEY_FILE).unlink()
    with pytest.raises(KeyUnavailable, match="rotate --master"):
        restore_key(data, tmp_path / "kept", None)


async def test_a_key_that_is_missing_or_wrong_is_not_backed_up(tmp_path: Path) -> None:
    data = await directory_with_data(tmp_path / "data")
    (data / MASTER_KEY_FILE).write_bytes(master_key_text(os.urandom(32)))
    with pytest.raises(KeyUnavailable, match="not the key that sealed"):
        back_up_key(data, tmp_path / "kept", None, made_us=1)
    (data / MASTER_KEY_FILE).unlink()
    with pytest.raises(KeyUnavailable, match="is missing"):
        back_up_key(data, tmp_path / "kept", None, made_us=1)
    assert not (tmp_path / "kept").exists()


async def test_a_backup_does_not_take_the_place_of_another_file(tmp_path: Path) -> None:
    data = await directory_with_data(tmp_path / "data")
    (tmp_path / "kept").write_bytes(b"precious")
    with pytest.raises(AlreadyExists, match="kept"):
        back_up_key(data, tmp_path / "kept", None, made_us=1)
    assert (tmp_path / "kept").read_bytes() == b"precious"


def test_what_is_no_data_directory_has_no_key(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not a Sealane data directory"):
        back_up_key(tmp_path, tmp_path / "kept", None, made_us=1)
