"""The gate at which the source of a query waits until the pipeline tells it how far to go."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sealane.pipeline.steps.gate import AtTheGate, Gate, Word

DEADLINE_SECONDS = 30.0


@pytest.fixture
def gate() -> Iterator[Gate]:
    with closing(Gate()) as gate:
        yield gate


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def wait_for_the_question(gate: Gate) -> None:
    for _ in range(3):  # It comes in, and then it asks.
        if gate.is_asked(DEADLINE_SECONDS):
            return
    raise AssertionError("nobody has asked")


def test_a_source_waits_for_one_word_after_the_other(gate: Gate, elsewhere: ThreadPoolExecutor) -> None:
    source = AtTheGate(gate.path)
    for until in ({"default/orders": {"incarnation": 1, "0": 17}}, None):
        assert not gate.is_asked(0.0)
        word: Future[Word | None] = elsewhere.submit(source.wait)
        wait_for_the_question(gate)
        assert gate.is_asked(0.0), "it is asked until it answers"
        assert not word.done()
        gate.let_through(until)
        assert word.result(DEADLINE_SECONDS) == Word(until)
    source.leave()


def test_a_source_that_waits_is_sent_away_when_the_gate_closes(gate: Gate, elsewhere: ThreadPoolExecutor) -> None:
    source = AtTheGate(gate.path)
    word = elsewhere.submit(source.wait)
    wait_for_the_question(gate)
    gate.close()
    assert word.result(DEADLINE_SECONDS) is None
    assert source.wait() is None, "and is not kept when it comes again"
    assert AtTheGate(gate.path).wait() is None, "nor is another one"


def test_a_source_that_has_ended_asks_nothing_and_another_one_may(gate: Gate, elsewhere: ThreadPoolExecutor) -> None:
    first = AtTheGate(gate.path)
    word = elsewhere.submit(first.wait)
    wait_for_the_question(gate)
    gate.let_through()
    assert word.result(DEADLINE_SECONDS) == Word(None)
    first.leave()
    assert not gate.is_asked(DEADLINE_SECONDS)
    second = AtTheGate(gate.path)
    word = elsewhere.submit(second.wait)
    wait_for_the_question(gate)
    gate.let_through()
    assert word.result(DEADLINE_SECONDS) == Word(None)
    second.leave()


def test_nobody_else_gets_to_it_and_nothing_of_it_stays() -> None:
    gate = Gate()
    home = Path(gate.path).parent
    assert stat.S_IMODE(home.stat().st_mode) == stat.S_IRWXU
    gate.close()
    assert not home.exists()


def test_a_long_name_of_the_directory_for_temporary_files_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with closing(Gate()) as gate:
        assert len(os.fsencode(gate.path)) < 104
    assert list(long.iterdir()) == []


HOLDS_A_GATE = """
import sys
from sealane.pipeline.steps.gate import Gate
gate = Gate()
print(gate.path, flush=True)
sys.stdin.read()
"""


class Holding:
    """A process of its own that has a gate, until it is told to end."""

    def __init__(self, directory: Path) -> None:
        environment = os.environ | {"TMPDIR": str(directory)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS_A_GATE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.gate = Path(self.process.stdout.readline().strip())

    def end(self) -> None:
        self.process.communicate()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_what_a_killed_pipeline_leaves_is_removed_by_the_next_and_no_more(tmp_path: Path) -> None:
    other = tmp_path / "sealane-gate-of-somebody"
    other.mkdir()
    killed, alive = Holding(tmp_path), Holding(tmp_path)
    killed.kill()
    assert killed.gate.exists()
    following = Holding(tmp_path)
    assert following.gate.exists()
    assert not killed.gate.parent.exists()
    assert alive.gate.exists(), "its pipeline lives"
    following.end()
    alive.end()
    assert list(tmp_path.iterdir()) == [other]
