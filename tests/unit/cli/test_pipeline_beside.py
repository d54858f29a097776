"""A pipeline that runs as long as its node does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from sealane.cli import pipeline_beside
from sealane.cli.pipeline_beside import PipelineBeside

DEADLINE_SECONDS = 60.0
TELLING = """
import signal, sys, time
# Blocked before anything is told, so that the signal waits for `sigwait` however early it comes.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
def tell(text):
    with open(sys.argv[1], "a") as file:
        file.write(text + "\\n")
tell("began")
"""
OBEDIENT = "signal.sigwait([signal.SIGTERM]); tell('ended')"
FAILING = "sys.exit(1)"
STUBBORN = "time.sleep(600)"


def lines_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def wait_for(path: Path, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(lines_of(path)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def program(text: str, path: Path) -> list[str]:
    return [sys.executable, "-c", TELLING + text, str(path)]


def test_it_is_ended_by_a_signal_and_waited_for(tmp_path: Path) -> None:
    told = tmp_path / "told"
    beside = PipelineBeside(program(OBEDIENT, told))
    beside.start()
    wait_for(told, 1)
    beside.ask_to_end()
    beside.close()
    assert lines_of(told) == ["began", "ended"]


def test_it_is_started_again_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_beside, "RESTART_SECONDS_MIN", 0.01)
    told = tmp_path / "told"
    beside = PipelineBeside(program(FAILING, told))
    beside.start()
    wait_for(told, 3)
    beside.close()


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_beside, "STOP_SECONDS", 0.01)
    told = tmp_path / "told"
    beside = PipelineBeside(program(STUBBORN, told))
    beside.start()
    wait_for(told, 1)
    beside.close()
    assert lines_of(told) == ["began"]


def test_closing_before_the_start_is_fine() -> None:
    PipelineBeside(["nothing"]).close()
