"""`sealane-backup`: a new backup each time, the newest ones kept, and nothing removed that should stay."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sealane.engine.local import restore
from tests.deploy.places import DEPLOY
from tests.integration.server.up import DEADLINE_SECONDS, Up, environment

OLD = ["sealane-20260101T000000Z", "sealane-20260102T000000Z", "sealane-20260103T000000Z"]
OF_OTHERS = ["sealane-before-the-upgrade", "monday", "sealane-20260101T000000Z.tar", ".sealane-notes.unfinished"]
UNFINISHED = ".sealane-20260104T000000Z.unfinished"


@pytest.fixture
def backups(tmp_path: Path, require_service: Callable[[str, bool, str], None]) -> Path:
    require_service("flock", shutil.which("flock") is not None, "apt-get install util-linux")
    directory = tmp_path / "backups"
    for name in (*OLD, *OF_OTHERS, UNFINISHED):
        (directory / name / "wal").mkdir(parents=True)
    return directory


def run(data: Path, directory: Path, keep: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DEPLOY / "systemd" / "sealane-backup", data, directory, keep],
        env=environment(PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_the_newest_are_kept_and_what_others_have_put_there(node: Up, backups: Path, tmp_path: Path) -> None:
    done = run(node.data, backups, "3")
    assert done.returncode == 0, done.stderr
    (new,) = names(backups) - {*OLD, *OF_OTHERS}
    assert names(backups) == {new, *OLD[1:], *OF_OTHERS}
    assert f"removed {backups / OLD[0]}" in done.stdout
    restored = restore(backups / new, tmp_path / "restored")
    assert restored.messages >= 3


def test_a_backup_that_fails_removes_none(backups: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "no-data", backups, "1")
    assert done.returncode != 0
    assert names(backups) == {*OLD, *OF_OTHERS}


def test_two_do_not_get_in_each_others_way(backups: Path, tmp_path: Path) -> None:
    held = os.open(backups, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run(tmp_path / "no-data", backups, "1")
    finally:
        os.close(held)
    assert done.returncode == 1
    assert "another one is at work" in done.stderr
    assert UNFINISHED in names(backups)


@pytest.mark.parametrize("keep", ["", "0", "-1", "all", "7 "])
def test_how_many_to_keep_must_be_a_number(backups: Path, tmp_path: Path, keep: str) -> None:
    done = run(tmp_path / "no-data", backups, keep)
    assert done.returncode == 2
    assert "KEEP" in done.stderr
    assert names(backups) == {*OLD, *OF_OTHERS, UNFINISHED}


def test_it_says_what_it_needs_to_be_told() -> None:
    done = subprocess.run([DEPLOY / "systemd" / "sealane-backup"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: sealane-backup DATA DIRECTORY KEEP\n")
