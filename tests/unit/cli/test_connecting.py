"""How a command reaches its node, and how it ends; which one is meant is in tests/unit/client/test_finding.py."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import sealane
from sealane.cli.connecting import ask, run
from sealane.cli.group import SealaneGroup
from sealane.errors import (
    DataDirectoryInUse,
    FilterError,
    Forbidden,
    InvalidArgument,
    InvalidName,
    QueueFull,
    Unauthenticated,
    Unavailable,
    UntrustedNode,
)


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (Unauthenticated("who are you?"), 3),
        (Forbidden("anna", "publish", "default/orders"), 3),
        (UntrustedNode("10.0.0.5:7070", "its certificate has expired", "restart it"), 3),
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


@pytest.fixture
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("nothing_is_set")
def test_administration_begins_on_a_directory_on_which_no_node_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    ask(None, data, lambda lane: lane.create_topic("orders"), offline=True)
    assert "no node runs on" in capsys.readouterr().err
    assert ask(None, data, lambda lane: lane.topics(), offline=True) == ["default/orders"]


@pytest.mark.usefixtures("nothing_is_set")
def test_what_is_no_administration_needs_a_node_and_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no node found"):
        ask(None, tmp_path / "data", lambda lane: lane.topics())
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("nothing_is_set")
def test_a_directory_that_another_process_holds_is_not_opened(tmp_path: Path) -> None:
    async def inside(lane: object) -> None:
        async with sealane.embedded(tmp_path / "data"):
            pass

    with pytest.raises(DataDirectoryInUse):
        ask(None, tmp_path / "data", inside, offline=True)


@pytest.mark.usefixtures("nothing_is_set")
def test_administration_of_a_node_elsewhere_does_not_fall_back_to_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALANE_URL", "sealane://127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        ask(None, tmp_path / "data", lambda lane: lane.topics(), offline=True, seconds=0.3)
    assert not (tmp_path / "data").exists()
