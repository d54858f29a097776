"""From what was seen to the weights of one hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.pipeline.routes.balancing import best_weights
from sealane.pipeline.routes.curves import hour_of_week, known_at
from sealane.routing.weights import Weights


@dataclass(frozen=True, slots=True)
class NodeRoute:
    """What one node is to get, and why."""

    node: str
    weight: float
    expected_ms: float
    """The 95th percentile of latency there, by its curve, at that weight."""
    load: float
    """Of its capacity, in a busy minute of the hour."""
    messages: int
    """How many attempts this rests on."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The weights for one hour."""

    hour: int | None
    """Of the week; none where that hour was never seen."""
    routes: tuple[NodeRoute, ...]
    """In the order of the nodes' names."""

    @property
    def weights(self) -> dict[str, float]:
        return {route.node: route.weight for route in self.routes}


def learn(seen: pa.Table, hour: int, previous: Weights | None = None) -> Learned | None:
    """The weights for an hour (counted from 1970) by what was seen in those before it; None if that is nothing.

    `seen` has the columns of `NODE_HOURS`. `previous` are the weights that hold now; without any, all nodes get the
    same now.
    """
    known = known_at(seen, hour)
    if known is None:
        return None
    weights = best_weights(known.curves, known.per_second, _shares(known.nodes, previous))
    expected = known.curves.latencies_ms(weights, known.per_second)
    loads = known.curves.loads(weights, known.per_second)
    routes = tuple(
        NodeRoute(node, float(weights[at]), float(expected[at]), float(loads[at]), int(known.messages[at]))
        for at, node in enumerate(known.nodes)
    )
    return Learned(hour_of_week(hour) if known.hours_seen else None, routes)


def _shares(nodes: tuple[str, ...], previous: Mapping[str, float] | None) -> np.ndarray:
    """What each node gets now: a new one nothing yet, and those that are left share what was that of others."""
    shares = np.array([(previous or {}).get(node, 0.0) for node in nodes])
    return shares / shares.sum() if shares.sum() > 0 else np.full(len(nodes), 1 / len(nodes))
