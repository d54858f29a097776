"""Which node a command means, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sealane.cli.connecting import find_node, profile_path, run
from sealane.cli.group import SealaneGroup
from sealane.errors import (
    CorruptData,
    FilterError,
    Forbidden,
    InvalidArgument,
    InvalidName,
    QueueFull,
    Unauthenticated,
    Unavailable,
)


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SEALANE_URL", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def write_node_file(data: Path, *, pid: int, **doors: str) -> None:
    data.mkdir(exist_ok=True)
    (data / "node.json").write_text(json.dumps({"pid": pid, "doors": doors, "insecure": True}))


def write_profile(text: str) -> None:
    profile_path().parent.mkdir(parents=True, exist_ok=True)
    profile_path().write_text(text)


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_node_is_looked_for_in_the_promised_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile("url: sealane://profile:1\n")
    assert find_node(None, tmp_path / "data") == "sealane://profile:1"

    write_node_file(tmp_path / "data", pid=os.getpid(), native="127.0.0.1:2")
    assert find_node(None, tmp_path / "data") == "sealane://127.0.0.1:2"

    monkeypatch.setenv("SEALANE_URL", "sealane://environment:3")
    assert find_node(None, tmp_path / "data") == "sealane://environment:3"

    assert find_node("sealane://given:4", tmp_path / "data") == "sealane://given:4"


def test_without_any_trace_of_a_node_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no node found: start one with `sealane up --insecure`, or give --url"):
        find_node(None, tmp_path)


def test_a_node_that_has_ended_is_not_asked(tmp_path: Path) -> None:
    pid = ended_pid()
    write_node_file(tmp_path, pid=pid, native="127.0.0.1:2")

    with pytest.raises(Unavailable, match=rf"process {pid}, has ended\): start one"):
        find_node(None, tmp_path)


def test_a_node_without_a_native_door_cannot_be_asked(tmp_path: Path) -> None:
    write_node_file(tmp_path, pid=os.getpid(), http="127.0.0.1:8080")

    with pytest.raises(Unavailable, match="has no native door"):
        find_node(None, tmp_path)


def test_a_file_that_is_not_what_a_node_writes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text("[]")

    with pytest.raises(CorruptData, match="not what a node writes"):
        find_node(None, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "address: x", "url: 5", "url: [", "\tx"])
def test_a_profile_that_tells_no_address_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    write_profile(text)

    with pytest.raises(InvalidArgument, match=r"profile\.yaml"):
        find_node(None, tmp_path)


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (Unauthenticated("who are you?"), 3),
        (Forbidden("anna", "publish", "default/orders"), 3),
        (InvalidArgument("rate", "is negative"), 2),
        (InvalidName("topic", "a b", "spaces are not allowed"), 2),
        (FilterError("a ~ b", 2, "no such operator"), 2),
        (Unavailable("nobody is there"), 1),
        (QueueFull("orders", 10, 10), 1),
        (OSError("the disk is on fire"), 1),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(error: Exception, exit_code: int) -> None:
    app = typer.Typer(cls=SealaneGroup)

    @app.command()
    def fails() -> None:
        raise error

    @app.command()
    def works() -> None:
        pass

    result = CliRunner().invoke(app, ["fails"])
    assert result.exit_code == exit_code
    assert result.stderr == f"error: {error}\n"


def test_ctrl_c_cancels_the_work_and_ends_with_130() -> None:
    cleaned = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    with pytest.raises(typer.Exit) as ended:
        run(work())
    assert ended.value.exit_code == 130
    assert cleaned == [True]
