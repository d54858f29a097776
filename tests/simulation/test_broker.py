"""The whole broker in the simulator: seeds in chunks, so that all cores have some."""

from __future__ import annotations

import pytest

from tests.simulation.scenarios import draw, play
from tests.simulation.seeds import run_seed

SEEDS = 300
CHUNK = 15


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_seed_keeps_the_brokers_promises(first):
    for seed in range(first, first + CHUNK):
        outcome = run_seed((seed, "broker"))
        replay = f"python -m tests.simulation --seed {seed} --scenario broker"
        assert not outcome.violations, "\n".join([*outcome.violations, f"replay and shrink: {replay}"])


def test_a_seed_is_the_same_run_each_time():
    first, again = ([play(draw(seed, "broker")).digest for seed in range(3)] for _ in range(2))
    assert first == again


def test_a_scenario_of_the_broker_can_be_written_down_and_read_back():
    scenario = draw(7, "broker")
    assert type(scenario).from_json(scenario.to_json()) == scenario
