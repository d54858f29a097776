"""Telemetry of simulated swarms, as nodes will tell it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from sealane.pipeline.routes.simulation import SECONDS_PLAYED, PlayedHour, Scenario, Swarm
from sealane.pipeline.routes.telemetry import FORMAT, TELEMETRY_SCHEMA, counts_of

MESSAGE_BYTES = 100


def telemetry_of(
    scenario: Scenario, played: PlayedHour, *, origins: Sequence[str] = ("edge-1",), topic: str = "default/orders"
) -> pa.Table:
    """The rows of an hour's minute that was played; what went to a node is dealt out to the origins in turn."""
    minute = datetime.fromtimestamp(played.hour * 3600, UTC)
    rows = []
    for at, node in enumerate(scenario.nodes):
        for number, origin in enumerate(origins):
            failures = _part(int(played.failures[at]), number, len(origins))
            answered = played.answers_ms[at][number :: len(origins)]
            if failures + len(answered):
                rows.append(
                    {
                        "format": FORMAT,
                        "minute": minute,
                        "origin": origin,
                        "target": node.name,
                        "topic": topic,
                        "attempts": failures + len(answered),
                        "failures": failures,
                        "bytes": MESSAGE_BYTES * len(answered),
                        "latency_counts": counts_of(answered),
                        "target_per_second": float(played.attempts[at]) / SECONDS_PLAYED,
                        "target_capacity_per_second": node.capacity_per_second,
                    }
                )
    return pa.Table.from_pylist(rows, schema=TELEMETRY_SCHEMA)


def generated(scenario: Scenario, *, seed: int, first_hour: int, hours: int, origins: Sequence[str]) -> pa.Table:
    """The telemetry of a swarm whose messages go to one node after the other, of so many hours."""
    swarm = Swarm(scenario, seed)
    played = (swarm.play(hour, None) for hour in range(first_hour, first_hour + hours))
    return pa.concat_tables([telemetry_of(scenario, each, origins=origins) for each in played]).combine_chunks()


def _part(count: int, number: int, parts: int) -> int:
    return len(np.arange(count)[number::parts])
