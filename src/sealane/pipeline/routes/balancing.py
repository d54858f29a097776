"""The weights that are best for given curves: a convex problem, solved by water-filling.

A message that goes to a node takes `rest_ms / (1 - load)` there, as in a queue; a share `failing` of them costs
`FAILURE_MS`, too. What is minimised is the mean of both over all messages. Every node's part of it is convex and grows
with its weight, so at the best weights one more message costs the same at each node that is not at a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FAILURE_MS = 5000.0
"""What an attempt that fails costs: more than the second that a router waits for it, since whoever waits is among the
slowest in any case.
"""
SAFE_LOAD = 0.7
"""A node may be planned up to this load whatever others have: latency is threefold, and a burst of 40 % still fits."""
FAIR_LOADS = 1.25
"""Beyond that, up to so many times the load that all have together: bounded load, as of consistent hashing."""
EXPLORING = 0.005
"""What all nodes together get at least, so that nobody's curve is forgotten; half of what the 99th percentile sees."""
STEP_DOWN, STEP_UP, STEP_UP_LEAST = 0.5, 1.5, 0.05
"""From one version to the next a weight becomes at least half, and at most one and a half times, or 0.05 more."""

_STEEP = 0.98
"""Beyond this load the curve goes on as a straight line: too much for all of them still has a best split."""
_ZOOMS, _PRICES, _HALVINGS = 5, 32, 32
"""The price is looked for between the two best of 32, five times; the weights of a price by halving what is between."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Of each node, in one order, how it answers."""

    rest_ms: np.ndarray
    """Latency without any load."""
    capacity_per_second: np.ndarray
    other_per_second: np.ndarray
    """What comes to it anyway, whatever the weights say: messages with keys."""
    failing: np.ndarray
    """The share of attempts that fail."""

    def loads(self, weights: np.ndarray, per_second: float) -> np.ndarray:
        """Of its capacity, what each node is asked for."""
        return (self.other_per_second + weights * per_second) / self.capacity_per_second

    def latencies_ms(self, weights: np.ndarray, per_second: float) -> np.ndarray:
        """What a message that succeeds takes at each node."""
        return self.rest_ms * _stretch(self.loads(weights, per_second))[0]


def best_weights(curves: Curves, per_second: float, previous: np.ndarray | None = None) -> np.ndarray:
    """The best split of so many messages a second. The sum is 1, and each is within `bounds`.

    Nodes with equal curves get equal weights, and of two that differ in one respect the worse one never gets more, as
    far as a step from `previous` allows. There must be at least one node.
    """
    low, high = bounds(curves, per_second, previous)
    less, more = low, high
    # Each node's price for one more message at its bounds: the common price is between the least and the highest.
    cheap, dear = float(_prices(curves, low, per_second).min()), float(_prices(curves, high, per_second).max())
    for _ in range(_ZOOMS):
        prices = np.geomspace(cheap, dear, _PRICES)
        found = _at_prices(curves, prices[:, None], low, high, per_second)
        above = int(np.searchsorted(found.sum(axis=1), 1.0))
        if above > 0:
            cheap, less = prices[above - 1], found[above - 1]
        if above < _PRICES:
            dear, more = prices[above], found[above]
    # What is between the last two prices is shared by how far each node is apart there: the sum is 1 then.
    width = more.sum() - less.sum()
    part = (1 - less.sum()) / width if width > 0 else 0.0
    return np.clip(less + (more - less) * part, low, high)


def bounds(curves: Curves, per_second: float, previous: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each node may get. The sum of the least is below 1, and that of the most above."""
    count = len(curves.rest_ms)
    per_second = max(per_second, 1e-9)
    floor = np.full(count, min(EXPLORING, 0.5) / count)
    mean_load = (per_second + curves.other_per_second.sum()) / curves.capacity_per_second.sum()
    load = max(SAFE_LOAD, FAIR_LOADS * mean_load)
    cap = np.clip((load * curves.capacity_per_second - curves.other_per_second) / per_second, floor, 1.0)
    if previous is None:
        return floor, cap
    high = np.minimum(cap, np.maximum(previous * STEP_UP, previous + STEP_UP_LEAST))
    missing = 1 - high.sum()
    if missing > 0:
        # Some can do less than before, and others must do it: each takes a larger step, as far as it has room.
        high = high + (cap - high) * min(missing / (cap - high).sum(), 1.0)
    return np.minimum(np.maximum(floor, previous * STEP_DOWN), high), high


def _at_prices(curves: Curves, prices: np.ndarray, low: np.ndarray, high: np.ndarray, per_second: float) -> np.ndarray:
    """For each price a row: the weight up to which one more message costs less at each node, within the bounds."""
    shape = (len(prices), len(low))
    below, above = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        affordable = _prices(curves, middle, per_second) < prices
        below, above = np.where(affordable, middle, below), np.where(affordable, above, middle)
    return np.where(_prices(curves, high, per_second) <= prices, high, below)


def _prices(curves: Curves, weights: np.ndarray, per_second: float) -> np.ndarray:
    """What one more message costs at each node, those beside it included: the derivative of its part of the cost."""
    stretch, growth = _stretch(curves.loads(weights, per_second))
    slower = growth * weights * per_second / curves.capacity_per_second
    return curves.rest_ms * (stretch + slower) + curves.failing * FAILURE_MS


def _stretch(loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much a load stretches latency, and how fast that grows."""
    within = np.minimum(loads, _STEEP)
    growth = 1 / (1 - within) ** 2
    return 1 / (1 - within) + growth * (loads - within), growth
