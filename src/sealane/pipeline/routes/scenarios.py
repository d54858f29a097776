"""The swarms that learned routes are judged by. Even routing carries each of them: nobody is overloaded on purpose."""

from __future__ import annotations

from sealane.pipeline.routes.simulation import Scenario, SimulatedNode


def _nodes(*capacities_per_second: float) -> tuple[SimulatedNode, ...]:
    return tuple(SimulatedNode(f"node-{at}", capacity) for at, capacity in enumerate(capacities_per_second, 1))


def _slow_in_the_day(hour: int) -> float:
    return 1.6 if 9 <= hour % 24 < 17 else 1.0


UNEVEN = Scenario("uneven", _nodes(26, 30, 40, 40, 50, 60))
"""The largest node can do more than twice what the smallest one can."""
SLOW = Scenario("slow", (SimulatedNode("node-1", 40, slowness=lambda hour: 1.6), *_nodes(40, 40, 40, 40, 40, 40)[1:]))
"""One of six works at five eighths of its speed, and does not know of it."""
FAILING = Scenario(
    "failing", (SimulatedNode("node-1", 40, outages=0.2, failing=0.5), *_nodes(40, 40, 40, 40, 40, 40)[1:])
)
"""One of six fails half of its attempts in one hour of five, nobody knows in which."""
BUSY_DAYS = Scenario("busy days", (SimulatedNode("node-1", 40, slowness=_slow_in_the_day), *_nodes(*[40] * 6)[1:]))
"""One of six has other work from nine to five."""

SCENARIOS = (UNEVEN, SLOW, FAILING, BUSY_DAYS)
