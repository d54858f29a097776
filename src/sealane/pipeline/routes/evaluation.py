"""Whether learned routes are worth it: the same messages by static hashing, in turn, and by learned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sealane.pipeline.routes.curves import GONE_HOURS, NODE_HOURS
from sealane.pipeline.routes.generating import telemetry_of
from sealane.pipeline.routes.learning import learn
from sealane.pipeline.routes.seeing import seen_in
from sealane.pipeline.routes.simulation import PlayedHour, Scenario, Swarm
from sealane.routing.weights import Weights

Way = Literal["hashing", "in turn", "by capacity", "learned"]
WAYS: tuple[Way, ...] = ("hashing", "in turn", "by capacity", "learned")
"""`by capacity`: shares by what nodes say they can do, which needs no learning."""
EVENLY: tuple[Way, ...] = ("by capacity", "learned")
"""Picked by `sealane.routing.weights.turn`, as routers do it; hashing is left to chance."""

FIRST_HOUR = 490_896
"""A Thursday, 00:00, of the year 2026."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a job knows after some days."""

    seen: pa.Table
    weights: Weights | None
    """Those that it made last."""
    next_hour: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What messages of one way have met with."""

    p50_ms: float
    p99_ms: float
    failures: float
    """Attempts that failed, as a share of messages."""
    messages: int


def trained(scenario: Scenario, *, seeds: Sequence[int], days: int) -> Training:
    """Weights are learned hour by hour, beginning with an even split: on one swarm after the other, each for so many
    days.
    """
    seen = NODE_HOURS.empty_table()
    weights: Weights | None = None
    hour = FIRST_HOUR
    for seed in seeds:
        swarm = Swarm(scenario, seed)
        for _ in range(24 * days):
            played = swarm.play(hour, _shares(scenario, weights), evenly=True)
            seen = pa.concat_tables([seen, seen_in(telemetry_of(scenario, played))])
            hour += 1
            weights = _learned(seen, hour, weights)
    return Training(seen.combine_chunks(), weights, hour)


def judged(scenario: Scenario, training: Training, *, seeds: Sequence[int]) -> dict[Way, Outcome]:
    """Each way on swarms of other seeds, for the day after the training. Nothing more is learned meanwhile: the weights
    of each hour are those that the training leads to. They end with the day, since nodes that nothing was heard of for
    `GONE_HOURS` get none.
    """
    hours = range(training.next_hour, training.next_hour + GONE_HOURS)
    planned, weights = [], training.weights
    for hour in hours:
        weights = _learned(training.seen, hour, weights)
        planned.append(weights)
    outcomes: dict[Way, Outcome] = {}
    for way in WAYS:
        played = []
        for seed in seeds:
            swarm = Swarm(scenario, seed)
            for hour, learned in zip(hours, planned, strict=True):
                played.append(swarm.play(hour, _shares_of(way, scenario, learned), evenly=way in EVENLY))
        outcomes[way] = _outcome(played)
    return outcomes


def _outcome(played: Sequence[PlayedHour]) -> Outcome:
    latencies_ms = np.concatenate([each.latency_ms for each in played])
    p50, p99 = np.percentile(latencies_ms, [50, 99])
    failures = sum(int(each.failures.sum()) for each in played)
    return Outcome(float(p50), float(p99), failures / len(latencies_ms), len(latencies_ms))


def gains(outcomes: Mapping[Way, Outcome]) -> dict[Way, float]:
    """By how much of theirs the 99th percentile of learned routes is lower than that of the other ways."""
    learned = outcomes["learned"].p99_ms
    return {way: 1 - learned / outcome.p99_ms for way, outcome in outcomes.items() if way != "learned"}


def _learned(seen: pa.Table, hour: int, previous: Weights | None) -> Weights | None:
    learned = learn(seen, hour, previous)
    return None if learned is None else learned.weights


def _shares_of(way: Way, scenario: Scenario, learned: Weights | None) -> np.ndarray | None:
    if way == "in turn":
        return None
    if way == "by capacity":
        said = np.array([node.capacity_per_second for node in scenario.nodes])
        return said / said.sum()
    # Ids of messages are random, so hashing them is drawing a node.
    return _shares(scenario, learned if way == "learned" else None)


def _shares(scenario: Scenario, weights: Weights | None) -> np.ndarray:
    if weights is None:
        return np.full(len(scenario.nodes), 1 / len(scenario.nodes))
    return np.array([weights.get(node.name, 0.0) for node in scenario.nodes])
