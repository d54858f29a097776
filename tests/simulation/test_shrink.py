from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.planted import PLANTED, hunt
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios import draw, play
from tests.simulation.shrink import minimise, shrink

ROOT = Path(__file__).parents[2]


def test_minimising_finds_the_parts_that_matter():
    assert minimise(range(100), lambda kept: {3, 50, 97} <= set(kept), tests_max=1000) == (3, 50, 97)
    assert minimise(range(100), lambda kept: True, tests_max=1000) == ()
    assert minimise((), lambda kept: True, tests_max=10) == ()


def test_minimising_stops_at_its_limit_with_something_that_fails():
    tests = []

    def fails(kept):
        tests.append(kept)
        return {3, 50} <= set(kept)

    kept = minimise(range(100), fails, tests_max=5)
    assert len(tests) == 5
    assert {3, 50} <= set(kept)


def test_a_shrunk_scenario_is_small_fails_alike_and_can_be_written_down():
    scenario = draw(0, "toy", {"bug": "forgets acks"})
    wanted = {violation.oracle for violation in play(scenario).violations}
    small = shrink(scenario, play)
    assert len(small.steps) == 2, "publish, consume: the last life then grants it again"
    assert small.faults == ()
    again = Scenario.from_json(small.to_json())
    assert again == small
    assert {violation.oracle for violation in play(again).violations} & wanted


@pytest.mark.simulation
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_every_planted_bug_is_found(planted):
    assert hunt(planted) is not None


def simulate(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def test_the_command_runs_seeds_side_by_side_and_a_seed_alone_is_the_same_in_any_process():
    many = simulate("--seeds", "12", "--scenario", "toy", "--jobs", "2")
    assert many.returncode == 0, many.stdout + many.stderr
    assert "12 seeds, 0 failed" in many.stdout
    digest = re.compile("digest ([0-9a-f]+)")
    alone = {tuple(digest.findall(simulate("--seed", "5", "--scenario", "toy").stdout)) for _ in range(2)}
    assert alone == {(play(draw(5, "toy")).digest,)}
