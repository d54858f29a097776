"""`sealane log backup` while a node holds the directory: the node makes the copy itself, and goes on serving."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sealane
from sealane.testing.node_process import NodeProcess


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sealane", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


async def test_a_running_node_is_backed_up_and_its_copy_runs(tmp_path: Path):
    with NodeProcess(tmp_path / "data") as node:
        async with sealane.connect(node.url) as lane:
            await lane.publish_many("orders", [b"%d" % number for number in range(100)])
            made = run("log", "backup", node.data, tmp_path / "copy", "--json")
            assert made.returncode == 0, made.stderr
            assert json.loads(made.stdout)["messages"] == 100
            assert (await lane.publish("orders", b"after")).offset == 100
    assert run("log", "restore", tmp_path / "copy", tmp_path / "restored").returncode == 0
    with NodeProcess(tmp_path / "restored") as restored:
        async with sealane.connect(restored.url) as lane:
            assert (await lane.publish("orders", b"elsewhere")).offset == 100


async def test_the_node_tells_how_far_its_backup_is_and_refuses_what_cannot_be(tmp_path: Path):
    seen: list[tuple[int, int]] = []
    with NodeProcess(tmp_path / "data") as node:
        async with sealane.connect(node.url) as lane:
            await lane.publish_many("orders", [bytes(1000)] * 5_000)
            report = await lane.backup(str(tmp_path / "copy"), progress=lambda *told: seen.append(told))
            assert report.messages == 5_000
            assert seen
            assert seen[-1][0] == seen[-1][1]
            with pytest.raises(sealane.StorageError, match="copy"):
                await lane.backup(str(tmp_path / "copy"))
            with pytest.raises(sealane.InvalidArgument, match="absolute"):
                await lane.backup("copy")


async def test_a_directory_that_another_program_holds_is_not_backed_up_behind_its_back(tmp_path: Path):
    async with sealane.embedded(tmp_path / "data") as lane:
        await lane.publish("orders", b"1")
        made = run("log", "backup", tmp_path / "data", tmp_path / "copy")
    assert made.returncode == 1
    assert "is no node: stop it" in made.stderr
