"""`sealane log backup` and `sealane log restore`, as their user sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sealane
from sealane.cli.main import app

run = CliRunner()


def log(*arguments: object, code: int = 0) -> Result:
    result = run.invoke(app, [str(argument) for argument in ("log", *arguments)])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    async with sealane.embedded(tmp_path / "data") as lane:
        for number in range(20):
            await lane.publish("orders", b"%d" % number)
        await lane.publish("shop/carts", b"a cart")
    return tmp_path / "data"


def test_a_backup_is_made_verified_and_restored(data: Path, tmp_path: Path) -> None:
    made = log("backup", data, tmp_path / "backup")
    assert "21 messages of 2 topics" in made.output
    assert "all sound" in log("verify", tmp_path / "backup").output
    assert "21 messages of 2 topics" in log("restore", tmp_path / "backup", tmp_path / "restored").output
    assert "all sound" in log("verify", tmp_path / "restored").output


def test_programs_get_json(data: Path, tmp_path: Path) -> None:
    made = json.loads(log("backup", data, tmp_path / "backup", "--json").output)
    assert (made["messages"], made["key_included"], made["damaged"]) == (21, True, [])
    assert [(p["domain"], p["topic"], p["end"]) for p in made["partitions"]] == [
        ("default", "orders", 20),
        ("shop", "carts", 1),
    ]
    restored = json.loads(log("restore", tmp_path / "backup", tmp_path / "restored", "--json").output)
    assert (restored["messages"], restored["key_missing"]) == (21, False)
    assert restored["taken_us"] == made["taken_us"]


def test_without_the_key_both_say_so(data: Path, tmp_path: Path) -> None:
    assert "master.key was left out" in log("backup", data, tmp_path / "backup", "--no-key").stderr
    assert not (tmp_path / "backup" / "master.key").exists()
    said = log("restore", tmp_path / "backup", tmp_path / "restored").stderr
    assert f"put it at {tmp_path / 'restored' / 'master.key'}" in said


def test_what_cannot_be_done_is_one_line(data: Path, tmp_path: Path) -> None:
    log("backup", data, tmp_path / "backup")
    for arguments, problem in (
        (("backup", data, tmp_path / "backup"), "something is there already"),
        (("backup", tmp_path / "nowhere", tmp_path / "other"), "is not a Sealane data directory"),
        (("restore", tmp_path / "backup", data), "refused: it holds"),
        (("restore", data, tmp_path / "other"), "is not a backup"),
    ):
        said = log(*arguments, code=1).stderr
        assert problem in said
        assert said.startswith("error: ")
        assert len(said.splitlines()) == 1
    log("backup", data, code=2)


def test_a_damaged_backup_is_named(data: Path, tmp_path: Path) -> None:
    log("backup", data, tmp_path / "backup")
    [segment] = (tmp_path / "backup" / "wal").glob("*.wal")
    content = bytearray(segment.read_bytes())
    content[200] ^= 4
    segment.write_bytes(bytes(content))
    assert (
        f"wal/{segment.name} is not as it was written"
        in log("restore", tmp_path / "backup", tmp_path / "restored", code=1).stderr
    )
    assert not (tmp_path / "restored").exists()


async def test_a_directory_that_a_process_holds_names_that_process(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path / "data"):
        assert f"process {os.getpid()}" in log("backup", tmp_path / "data", tmp_path / "backup", code=1).stderr
    assert not (tmp_path / "backup").exists()
