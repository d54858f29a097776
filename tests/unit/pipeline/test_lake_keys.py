"""The lake's keys: what they seal opens by them and by nothing else, and the file is never lost by itself."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from sealane.errors import CorruptData, FormatTooNew, InvalidArgument, KeyUnavailable
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.keeping import keys_of, keys_path
from sealane.pipeline.secrets.key_file import read_file
from sealane.pipeline.secrets.lake_keys import OVERHEAD_BYTES, LakeKeys, sealed_by
from sealane.pipeline.settings import PipelineSettings

PLACE = bytes(range(16))
BODY = b'{"amount": 9.5}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "lake.keys"


@pytest.fixture
def keys(path: Path) -> LakeKeys:
    return LakeKeys.open_or_make(path)


# --- bodies -----------------------------------------------------------------------------------------------------------


def test_what_is_sealed_opens_with_the_keys_in_the_file(keys: LakeKeys, path: Path) -> None:
    sealed = keys.seal("shop", PLACE, BODY)
    assert BODY not in sealed
    assert len(sealed) == len(BODY) + OVERHEAD_BYTES
    assert LakeKeys.open_or_make(path).open("shop", PLACE, sealed) == BODY
    assert keys.seal("shop", PLACE, BODY) != sealed


@pytest.mark.parametrize("at", [5, 16, 17, -1])
def test_a_body_that_was_changed_does_not_open(keys: LakeKeys, at: int) -> None:
    sealed = bytearray(keys.seal("shop", PLACE, BODY))
    sealed[at] ^= 1
    with pytest.raises(CorruptData, match="does not open with lake key 1"):
        keys.open("shop", PLACE, bytes(sealed))


def test_a_body_opens_in_its_place_and_domain_only(keys: LakeKeys) -> None:
    sealed = keys.seal("shop", PLACE, BODY)
    for domain, place in (("shop", PLACE[::-1]), ("bank", PLACE), ("sho", b"p" + PLACE)):
        with pytest.raises(CorruptData):
            keys.open(domain, place, sealed)


def test_keys_of_another_lake_open_nothing(keys: LakeKeys, tmp_path: Path) -> None:
    with pytest.raises(CorruptData):
        LakeKeys.open_or_make(tmp_path / "other.keys").open("shop", PLACE, keys.seal("shop", PLACE, BODY))


def test_bytes_that_are_no_sealed_body_are_told(keys: LakeKeys) -> None:
    with pytest.raises(CorruptData, match="at least"):
        keys.open("shop", PLACE, b"\x01")
    with pytest.raises(FormatTooNew):
        keys.open("shop", PLACE, b"\x02" + bytes(64))


def test_columns_are_sealed_and_opened_row_by_row(keys: LakeKeys) -> None:
    domains, places = pa.array(["shop", "bank", "shop"]), pa.array([PLACE, PLACE, PLACE[::-1]])
    bodies = pa.array([BODY, None, b""])
    sealed = keys.seal_column(domains, places, bodies)
    assert sealed.null_count == 1
    assert keys.open_column(domains, places, sealed) == bodies


def test_executors_have_the_keys_by_value_and_nothing_shows_them(keys: LakeKeys, path: Path) -> None:
    sealed = keys.seal("shop", PLACE, BODY)
    travelled = pickle.loads(pickle.dumps(keys))
    path.unlink()
    assert travelled.open("shop", PLACE, sealed) == BODY
    assert travelled.hash_number("shop", "+491701234567") == keys.hash_number("shop", "+491701234567")
    assert repr(keys) == f"<LakeKeys [1] of {str(path)!r}>"


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_a_number_has_one_hash_in_a_domain_and_another_in_the_next(keys: LakeKeys) -> None:
    hashed = keys.hash_number("shop", "+49 170 1234567")
    assert hashed == keys.hash_number("shop", "0049 (0)170/1234567")
    assert hashed.startswith("tel:")
    assert len(hashed) == 68
    assert hashed != keys.hash_number("bank", "+491701234567")
    assert hashed != keys.hash_number("shop", "+491701234568")


# --- rotation ---------------------------------------------------------------------------------------------------------


def test_after_a_rotation_the_newest_seals_older_ones_open_and_hashes_stay(keys: LakeKeys, path: Path) -> None:
    before, hashed = keys.seal("shop", PLACE, BODY), keys.hash_number("shop", "+491701234567")
    assert keys.rotate() == 2
    again = LakeKeys.open_or_make(path)
    assert again.open("shop", PLACE, before) == BODY
    assert (sealed_by(before), sealed_by(again.seal("shop", PLACE, BODY))) == (1, 2)
    assert again.hash_number("shop", "+491701234567") == hashed
    assert again.check == keys.check


def test_a_key_that_was_dropped_is_missed_by_name(keys: LakeKeys) -> None:
    before = keys.seal("shop", PLACE, BODY)
    keys.rotate()
    assert keys.drop_older() == [1]
    with pytest.raises(KeyUnavailable, match=r"sealed by lake key 1, and .*lake\.keys has 2: restore"):
        keys.open("shop", PLACE, before)


def test_a_rotation_by_another_process_is_kept(keys: LakeKeys, path: Path) -> None:
    LakeKeys.open_or_make(path).rotate()
    assert keys.rotate() == 3
    assert LakeKeys.open_or_make(path).numbers == [1, 2, 3]


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone_and_stays_what_it_is(keys: LakeKeys, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    LakeKeys.open_or_make(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["lake.keys"]


def test_a_file_that_everybody_reads_is_refused(keys: LakeKeys, path: Path) -> None:
    path.chmod(0o644)
    with pytest.raises(KeyUnavailable, match="chmod 600"):
        LakeKeys.open_or_make(path)


@pytest.mark.parametrize("spoil", [lambda data: data[:40], lambda data: data.replace(b'"1"', b'"2"'), lambda _: b""])
def test_a_damaged_file_is_told_and_never_replaced(keys: LakeKeys, path: Path, spoil: object) -> None:
    assert callable(spoil)
    spoiled = spoil(path.read_bytes())
    path.write_bytes(spoiled)
    with pytest.raises(KeyUnavailable, match="restore it from a copy"):
        LakeKeys.open_or_make(path)
    assert path.read_bytes() == spoiled
    assert read_file(path.with_name("none")) is None


# --- keys and their lake ----------------------------------------------------------------------------------------------


def test_a_lake_never_gets_other_keys_than_it_has(path: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    keys = keys_of(lake, path)
    assert keys_of(lake, path).check == keys.check
    with pytest.raises(KeyUnavailable, match="another lake"):
        keys_of(lake, LakeKeys.open_or_make(tmp_path / "other.keys").path)
    path.unlink()
    with pytest.raises(KeyUnavailable, match="is not there"):
        keys_of(lake, path)
    assert not path.exists()


def test_keys_do_not_lie_in_the_lake(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="within the lake"):
        keys_of(Lake(tmp_path / "lake"), tmp_path / "lake" / "lake.keys")


def test_the_file_is_in_the_data_directory_or_where_the_settings_say(tmp_path: Path) -> None:
    beside = PipelineSettings(lake=tmp_path / "lake")
    assert keys_path(beside) == tmp_path / "lake.keys"
    of_node = replace(beside, data=Path("/var/lib/sealane"))
    assert keys_path(of_node) == Path("/var/lib/sealane/lake.keys")
    assert keys_path(replace(of_node, keys=Path("/run/secrets/lake.keys"))) == Path("/run/secrets/lake.keys")
