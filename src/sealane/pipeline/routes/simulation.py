"""A swarm of nodes that are queues, to learn from and to judge by: seeded, so that a run can be had again.

Each node works off what comes to it one after the other, with exponential service times. Of every hour one minute is
played, and queues go on from one such minute into the next: a day is as many messages as a test has time for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sealane.routing.weights import GOLDEN

SECONDS_PLAYED = 60.0
GIVING_UP_SECONDS = 1.0
"""How long a router waits for a node that fails, before it tries another one."""


def _sound(hour: int) -> float:
    return 1.0


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    name: str
    capacity_per_second: float
    """What it says that it can do, and does while it is sound."""
    way_ms: float = 2.0
    """What the way to it takes."""
    slowness: Callable[[int], float] = _sound
    """By the hour (from 1970), how many times longer it works on a message. It does not know of it."""
    outages: float = 0.0
    """The share of hours in which it fails."""
    failing: float = 0.0
    """The share of attempts that fail then."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    nodes: tuple[SimulatedNode, ...]
    load: float = 0.42
    """Of what all nodes say they can do, how much is asked for over the day."""
    swing: float = 0.35
    """By how much of that it is more at noon, and less at midnight."""

    def per_second(self, hour: int) -> float:
        total = sum(node.capacity_per_second for node in self.nodes)
        return total * self.load * (1 - self.swing * float(np.cos(2 * np.pi * (hour % 24) / 24)))


@dataclass(frozen=True, slots=True)
class PlayedHour:
    """What happened to the messages of one hour."""

    hour: int
    latency_ms: np.ndarray
    """Of each message, from its first attempt to its end."""
    attempts: np.ndarray
    """By node."""
    failures: np.ndarray
    answers_ms: tuple[np.ndarray, ...]
    """By node, how long each attempt that succeeded took there."""


@dataclass
class Swarm:
    """Nodes with their queues, hour after hour."""

    scenario: Scenario
    seed: int
    _free_at: np.ndarray = field(init=False)
    _random: np.random.Generator = field(init=False)
    _came: int = 0

    def __post_init__(self) -> None:
        self._free_at = np.zeros(len(self.scenario.nodes))
        self._random = np.random.default_rng(self.seed)

    def play(self, hour: int, shares: np.ndarray | None, *, evenly: bool = False) -> PlayedHour:
        """One more hour, with these shares of the messages for the nodes; None: to one after the other, in turn."""
        nodes, random = self.scenario.nodes, self._random
        count = random.poisson(self.scenario.per_second(hour) * SECONDS_PLAYED)
        came = hour * SECONDS_PLAYED + np.sort(random.random(count)) * SECONDS_PLAYED
        numbers = self._came + np.arange(count)
        self._came += count
        even = np.full(len(nodes), 1 / len(nodes))
        if shares is None:
            first = numbers % len(nodes)
        else:
            first = _drawn(shares, numbers * GOLDEN % 1.0 if evenly else random.random(count))
        fails = np.array([node.failing if random.random() < node.outages else 0.0 for node in nodes])
        failed = random.random(count) < fails[first]
        target, arrived = first.copy(), came.copy()
        # Who was failed goes to another node once it has given up; one that fails is not met twice.
        for failing in np.flatnonzero(fails):
            mine = failed & (first == failing)
            others = (even if shares is None else shares) * (np.arange(len(nodes)) != failing)
            target[mine] = _drawn(others / others.sum(), random.random(int(mine.sum())))
            arrived[mine] += GIVING_UP_SECONDS
        latency_ms = (arrived - came) * 1000
        answers = []
        for index, node in enumerate(nodes):
            mine = np.flatnonzero(target == index)
            mine = mine[np.argsort(arrived[mine], kind="stable")]
            took = random.exponential(node.slowness(hour) / node.capacity_per_second, len(mine))
            done = self._worked_off(index, arrived[mine], took)
            answered_ms = (done - arrived[mine]) * 1000 + node.way_ms
            latency_ms[mine] += answered_ms
            answers.append(answered_ms)
        failures = np.bincount(first[failed], minlength=len(nodes))
        attempts = np.bincount(target, minlength=len(nodes)) + failures
        return PlayedHour(hour, latency_ms, attempts, failures, tuple(answers))

    def _worked_off(self, node: int, arrived: np.ndarray, took: np.ndarray) -> np.ndarray:
        """When each is done: a message begins when it is there and the one before it is done."""
        if not len(arrived):
            return arrived
        work = np.cumsum(took)
        begins = np.maximum.accumulate(np.maximum(arrived, self._free_at[node]) - (work - took))
        done: np.ndarray = begins + work
        self._free_at[node] = done[-1]
        return done


def _drawn(shares: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A node for each number, as `sealane.routing.weights.pick` picks it."""
    return np.minimum(np.searchsorted(np.cumsum(shares), uniform, side="right"), len(shares) - 1)
