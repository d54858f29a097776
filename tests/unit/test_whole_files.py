"""Files that are there whole or not at all, with their mode from their first moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sealane.whole_files import PRIVATE, PUBLIC, create_file, replace_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("wanted", [PRIVATE, PUBLIC])
def test_a_file_has_its_content_and_its_mode(tmp_path: Path, wanted: int) -> None:
    create_file(tmp_path / "new", b"content", wanted)
    replace_file(tmp_path / "other", b"content", wanted)
    for path in (tmp_path / "new", tmp_path / "other"):
        assert path.read_bytes() == b"content"
        assert mode(path) == wanted


def test_a_file_that_is_there_is_not_written_over_where_a_new_one_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "there", b"new", PRIVATE)
    assert (tmp_path / "there").read_bytes() == b"old"


def test_a_new_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "link", b"secret", PRIVATE)
    assert not (tmp_path / "elsewhere").exists()


def test_a_replaced_file_has_the_mode_that_is_asked_for_and_not_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "key"
    create_file(path, b"old", PUBLIC)
    replace_file(path, b"new", PRIVATE)
    assert (path.read_bytes(), mode(path)) == (b"new", PRIVATE)


def test_what_a_crash_left_behind_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "key"
    draft = tmp_path / f".key.{os.getpid()}.draft"
    create_file(draft, b"half", PUBLIC)
    replace_file(path, b"whole", PRIVATE)
    assert (path.read_bytes(), mode(path), draft.exists()) == (b"whole", PRIVATE, False)


def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "inside").touch()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "place", b"a file cannot take the place of a directory", PRIVATE)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_directory_that_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "a" / "key", b"secret", PRIVATE)
    assert mode(tmp_path / "a") == 0o700
