"""Learned routes beside static hashing and round robin: the slowest hundredth is at least 30 % faster."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sealane.pipeline.routes.evaluation import gains, judged, trained
from sealane.pipeline.routes.generating import telemetry_of
from sealane.pipeline.routes.learning import learn
from sealane.pipeline.routes.scenarios import FAILING, SLOW, UNEVEN
from sealane.pipeline.routes.seeing import seen_in
from sealane.pipeline.routes.simulation import Scenario, SimulatedNode, Swarm

LEAST_GAIN = 0.3


@pytest.mark.parametrize("scenario", [UNEVEN, SLOW, FAILING], ids=lambda scenario: scenario.name)
def test_the_99th_percentile_is_at_least_30_percent_better_on_seeds_that_were_not_learned_from(
    scenario: Scenario,
) -> None:
    training = trained(scenario, seeds=[1], days=2)
    outcomes = judged(scenario, training, seeds=[101, 102])
    lower = gains(outcomes)
    assert lower["hashing"] >= LEAST_GAIN, outcomes
    assert lower["in turn"] >= LEAST_GAIN, outcomes
    assert outcomes["learned"].failures <= outcomes["in turn"].failures


def test_weights_that_are_learned_from_what_they_lead_to_settle() -> None:
    training = trained(SLOW, seeds=[7], days=3)
    seen, weights = training.seen, training.weights
    swarm = Swarm(SLOW, seed=8)
    shares = []
    for hour in range(training.next_hour, training.next_hour + 12):
        assert weights is not None
        shares.append([weights[node.name] for node in SLOW.nodes])
        played = swarm.play(hour, np.array(shares[-1]), evenly=True)
        seen = pa.concat_tables([seen, seen_in(telemetry_of(SLOW, played))])
        learned = learn(seen, hour + 1, weights)
        weights = None if learned is None else learned.weights
    assert np.abs(np.diff(shares, axis=0)).max() < 0.04
    assert max(row[0] for row in shares) < 0.14, "the slow one gets less than the sixth that is its even share"


def test_a_queue_that_is_played_is_the_queue_of_the_books() -> None:
    one = Scenario("one", (SimulatedNode("a", 100, way_ms=0.0),), load=0.6, swing=0.0)
    swarm = Swarm(one, seed=5)
    latencies_ms = np.concatenate([swarm.play(hour, np.array([1.0])).latency_ms for hour in range(60)])
    assert latencies_ms.mean() == pytest.approx(1000 / (100 - 60), rel=0.05)
    assert np.percentile(latencies_ms, 99) == pytest.approx(1000 / (100 - 60) * np.log(100), rel=0.1)


def test_the_same_seed_plays_the_same() -> None:
    one, other = (Swarm(FAILING, seed=5) for _ in range(2))
    for hour in range(5):
        assert (one.play(hour, None).latency_ms == other.play(hour, None).latency_ms).all()
