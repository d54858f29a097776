"""How long a message takes at an easy pace: to its receipt, and to the consumer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench import wire
from bench.figures import percentile
from bench.work import Amounts, Part, Reading, Work

if TYPE_CHECKING:
    from bench.peers.peer import Peer

PERCENTS = (50, 95, 99, 99.9)


def _percentiles(side: str, ordered: Sequence[float]) -> dict[str, float]:
    return {f"{side}-p{percent:g}": percentile(ordered, percent) for percent in PERCENTS}


def _latencies(path: Path, amounts: Amounts) -> Reading:
    receipt, received = wire.latencies(path, count=amounts["count"], durable=amounts["durable"])
    values = {**_percentiles("receipt", receipt), **_percentiles("received", received)}
    return Reading(values, {"receipt-p50": receipt, "received-p50": received})


def _peer_latencies(peer: Peer, address: str, amounts: Amounts) -> Reading:
    received = peer.latencies(address, count=amounts["count"])
    return Reading(_percentiles("received", received), {"received-p50": received})


def _latency_parts(what: str, reaches: dict[str, float]) -> tuple[Part, ...]:
    return tuple(
        Part(f"{side}-p{p:g}", f"{what}, publish to {side}, p{p:g}", "ms", reaches.get(f"{side}-p{p:g}"), True)
        for side in ("received", "receipt")
        for p in PERCENTS
    )


LATENCY = (
    Work(
        "latency",
        "latency",
        _latency_parts(
            "1,000 single publishes a second",
            {"receipt-p50": 0.7, "receipt-p99": 3.0, "received-p50": 0.7, "received-p99": 3.0},
        ),
        _latencies,
        {"count": 5_000, "durable": True},
        {"count": 1_000},
        beside=_peer_latencies,
        seconds=8,
        quick_seconds=3,
    ),
    Work(
        "latency-memory",
        "latency",
        _latency_parts("1,000 single publishes a second, topic in memory", {"receipt-p50": 0.45, "received-p50": 0.45}),
        _latencies,
        {"count": 5_000, "durable": False},
        {"count": 1_000},
        seconds=8,
        quick_seconds=3,
    ),
)
