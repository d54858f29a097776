"""The best weights: shares of a whole within their bounds, and fair to whoever is better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.pipeline.routes.balancing import (
    EXPLORING,
    FAILURE_MS,
    FAIR_LOADS,
    SAFE_LOAD,
    STEP_DOWN,
    STEP_UP,
    STEP_UP_LEAST,
    Curves,
    best_weights,
    bounds,
)

FEW = settings(max_examples=40, deadline=None)


def curves(*nodes: tuple[float, float, float, float]) -> Curves:
    """Of each node: its latency at rest, its capacity, what comes to it anyway, and the share that fails."""
    return Curves(*(np.array(column) for column in zip(*nodes, strict=True)))


node = st.tuples(
    st.floats(0.1, 1000), st.floats(1, 1e5), st.just(0.0) | st.floats(0, 1e4), st.just(0.0) | st.floats(0, 1)
)
swarms = st.lists(node, min_size=1, max_size=9)
rates = st.floats(0, 1e6)


def cost(swarm: Curves, weights: np.ndarray, per_second: float) -> float:
    """What is minimised, by its own words."""
    return float(np.sum(weights * (swarm.latencies_ms(weights, per_second) + swarm.failing * FAILURE_MS)))


@FEW
@given(swarms, rates, st.booleans(), st.randoms(use_true_random=False))
def test_weights_are_shares_of_a_whole_within_their_bounds(nodes, per_second, has_previous, random) -> None:
    swarm = curves(*nodes)
    drawn = np.array([random.random() + 1e-3 for _ in nodes])
    previous = drawn / drawn.sum() if has_previous else None
    weights = best_weights(swarm, per_second, previous)
    low, high = bounds(swarm, per_second, previous)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights >= low - 1e-12).all()
    assert (weights <= high + 1e-12).all()


@FEW
@given(swarms, rates, st.data())
def test_the_order_of_the_nodes_says_nothing(nodes, per_second, data) -> None:
    order = data.draw(st.permutations(range(len(nodes))))
    straight = best_weights(curves(*nodes), per_second)
    turned = best_weights(curves(*[nodes[at] for at in order]), per_second)
    assert turned == pytest.approx(straight[list(order)], abs=1e-6)


@FEW
@given(node, st.integers(1, 9), rates)
def test_equal_nodes_get_equal_weights(one, count, per_second) -> None:
    assert best_weights(curves(*[one] * count), per_second) == pytest.approx(1 / count)


@FEW
@given(swarms, node, st.floats(1, 10), st.sampled_from(["slower", "smaller", "busier", "failing"]), rates)
def test_a_node_that_is_worse_never_gets_more(others, better, times, respect, per_second) -> None:
    rest_ms, capacity, other, failing = better
    worse = {
        "slower": (rest_ms * times, capacity, other, failing),
        "smaller": (rest_ms, capacity / times, other, failing),
        "busier": (rest_ms, capacity, other * times, failing),
        "failing": (rest_ms, capacity, other, min(failing * times, 1)),
    }[respect]
    weights = best_weights(curves(better, worse, *others), per_second)
    assert weights[1] <= weights[0] + 1e-6


@FEW
@given(st.lists(node, min_size=2, max_size=6), st.floats(0.05, 0.9), st.data())
def test_no_shift_from_one_node_to_another_is_better(nodes, load, data) -> None:
    swarm = curves(*[(rest_ms, capacity, 0.0, failing) for rest_ms, capacity, _, failing in nodes])
    per_second = load * float(swarm.capacity_per_second.sum())
    weights = best_weights(swarm, per_second)
    low, high = bounds(swarm, per_second)
    giving, taking = data.draw(st.permutations(range(len(nodes))))[:2]
    shift = data.draw(st.floats(0, 1)) * min(weights[giving] - low[giving], high[taking] - weights[taking])
    shifted = weights.copy()
    shifted[giving] -= shift
    shifted[taking] += shift
    best = cost(swarm, weights, per_second)
    assert cost(swarm, shifted, per_second) >= best - 1e-6 * best


def test_nobody_is_planned_beyond_the_bounded_load() -> None:
    fast, slow = (1.0, 100.0, 0.0, 0.0), (100.0, 100.0, 0.0, 0.0)
    light = curves(fast, slow, slow, slow)
    loads = light.loads(best_weights(light, 100), 100)
    assert loads[0] == pytest.approx(SAFE_LOAD)
    heavy = light.loads(best_weights(light, 300), 300)
    assert heavy[0] == pytest.approx(FAIR_LOADS * 0.75, abs=1e-3)


def test_messages_with_keys_take_their_part_of_the_bound() -> None:
    swarm = curves((1.0, 100.0, 60.0, 0.0), (100.0, 100.0, 0.0, 0.0))
    weights = best_weights(swarm, 50)
    assert weights[0] * 50 == pytest.approx(SAFE_LOAD * 100 - 60)


def test_a_node_that_fails_keeps_what_it_takes_to_know_when_it_does_not() -> None:
    sound, failing = (10.0, 100.0, 0.0, 0.0), (10.0, 100.0, 0.0, 0.5)
    weights = best_weights(curves(failing, sound, sound, sound), 100)
    assert weights[0] == pytest.approx(EXPLORING / 4)


def test_a_weight_moves_by_a_step_at_a_time() -> None:
    swarm = curves((10.0, 100.0, 0.0, 0.9), (10.0, 100.0, 0.0, 0.0), (10.0, 100.0, 0.0, 0.0))
    previous = np.array([0.6, 0.4, 0.0])
    weights = best_weights(swarm, 50, previous)
    assert weights[0] == pytest.approx(0.6 * STEP_DOWN, abs=0.06)
    assert weights[0] >= 0.6 * STEP_DOWN - 1e-9
    assert weights[1] <= 0.4 * STEP_UP + 1e-9
    assert weights[2] == pytest.approx(STEP_UP_LEAST)


def test_where_others_can_do_less_than_before_steps_do_not_hold_them_back() -> None:
    swarm = curves((10.0, 10.0, 0.0, 0.0), (10.0, 100.0, 0.0, 0.0))
    weights = best_weights(swarm, 88, np.array([0.9, 0.1]))
    assert weights[1] > 0.1 * STEP_UP + STEP_UP_LEAST
    assert swarm.loads(weights, 88).max() <= FAIR_LOADS * 88 / 110 + 1e-9


def test_too_much_for_all_is_split_by_what_they_can_do() -> None:
    swarm = curves((10.0, 10.0, 0.0, 0.0), (10.0, 100.0, 0.0, 0.0))
    assert best_weights(swarm, 10_000) == pytest.approx([1 / 11, 10 / 11], rel=0.01)
