"""What all commands of `sealane log` have in common."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sealane.cli.main import app
from tests.integration.log_cli.written import run, sealane, written


@pytest.mark.parametrize("command", [["inspect"], ["verify"], ["export", "orders", "--out", "x.jsonl"]])
def test_what_is_no_data_directory_is_one_clear_line(tmp_path, command):
    for directory, problem in ((tmp_path, "is not a Sealane data directory"), (tmp_path / "none", "does not exist")):
        result = sealane(*command, "--data", directory, code=1)
        assert problem in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [[], ["log"], ["log", "inspect"], ["log", "verify"], ["log", "export"]])
def test_help_teaches(command):
    result = run.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    if len(command) == 2:
        assert f"sealane log {command[1]}" in result.output
        assert "Examples" in result.output


async def test_the_directory_is_only_read(node):
    await written(node)
    await node.compact()
    await node.engine.close()
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.directory.rglob("*")}
    sealane("inspect", node.directory, "--records")
    sealane("verify", node.directory)
    sealane("export", node.directory, "orders", "--out", "-")
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.directory.rglob("*")}
    assert {path for path in before if path.is_file()} == {path for path in after if path.is_file()}
    assert {p: s for p, s in before.items() if p.is_file()} == {p: s for p, s in after.items() if p.is_file()}


def test_the_command_runs_as_a_program(tmp_path):
    program = "from sealane.cli.main import app; app()"
    arguments = ["log", "inspect", str(tmp_path / "none")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
