"""One pipeline at a time has a lake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealane.pipeline.lake.holding import LakeInUse, held, holder, stop_holder

PROGRAM = """
import signal, sys, threading
from pathlib import Path
from sealane.pipeline.lake.holding import held
stop = threading.Event()
if sys.argv[2] == "obeys":
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with held(Path(sys.argv[1])):
    print("has it", flush=True)
    stop.wait()
"""


@pytest.fixture
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lake, and obeys a signal or does not."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        yield process
        process.kill()


def test_it_is_free_before_and_after(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    with held(tmp_path):
        assert holder(tmp_path) == os.getpid()
    assert holder(tmp_path) is None
    with held(tmp_path):
        pass


@pytest.mark.parametrize("other", ["obeys"], indirect=True)
def test_a_second_one_is_told_who_has_it_and_can_have_it_stopped(other: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(LakeInUse, match=f"process {other.pid}.*sealane pipeline stop"), held(tmp_path):
        pass
    assert stop_holder(tmp_path, 60) == other.pid
    assert other.wait(60) == 0
    assert stop_holder(tmp_path, 60) is None


@pytest.mark.parametrize("other", ["obeys"], indirect=True)
def test_whoever_was_killed_has_it_no_more(other: subprocess.Popen[str], tmp_path: Path) -> None:
    other.kill()
    other.wait()
    assert holder(tmp_path) is None
    with held(tmp_path):
        pass


@pytest.mark.parametrize("other", ["does not"], indirect=True)
def test_one_that_does_not_end_in_time_is_named(other: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(LakeInUse) as still:
        stop_holder(tmp_path, 0.0)
    assert still.value.pid == other.pid
