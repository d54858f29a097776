"""What work costs on a node that holds much, relative to an empty one beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench import growth
from bench.growth import COSTS
from bench.work import Amounts, Part, Reading, Work

COST_MAX = 1.1
WHERE = {"a new topic": "new", "the big topic": "big"}
WHAT = {
    "batches": "batches of 5,000",
    "singles": "one message at a time",
    "receipt_ms": "latency to the receipt",
    "received_ms": "latency to the consumer",
    "batches_us": "the node's processor time for batches of 5,000",
    "singles_us": "the node's processor time for one message at a time",
    "paced_us": "the node's processor time at 1,000 single publishes a second",
}


def _parts(case: str, *wheres: str) -> tuple[Part, ...]:
    return tuple(
        Part(f"{WHERE[where]}-{cost}", f"{case}: {WHAT[cost]}, {where}", "× empty", COST_MAX, less_is_better=True)
        for where in wheres
        for cost in COSTS
    )


def _grown_by(kind: str) -> Callable[[Path, Amounts], Reading]:
    """Measure with so much of one kind, and nothing of the others."""

    def measure(path: Path, amounts: Amounts) -> Reading:
        much = {"messages": 0, "topics": 0, "connections": 0, kind: amounts[kind]}
        found = growth.measure(path, **much, rounds=amounts["rounds"], amounts=amounts["work"])
        rounds = {
            f"{WHERE[each.where]}-{cost}": [
                _dearer(cost, empty[cost], grown[cost]) for empty, grown in zip(each.empty, each.grown, strict=True)
            ]
            for each in found
            for cost in COSTS
        }
        memory = {"memory": f"{found[0].empty_mb:.0f} → {found[0].grown_mb:.0f} MB"}
        return Reading({}, rounds=rounds, notes=memory)

    return measure


def _dearer(cost: str, empty: float, grown: float) -> float:
    """How many times what it costs on the empty node: more is worse, of rates and of times alike."""
    return empty / grown if COSTS[cost] == "msg/s" else grown / empty


FULL = growth.Amounts()
LITTLE = growth.Amounts(batch_messages=100_000, single_messages=20_000, paced_messages=500)

GROWTH = (
    Work(
        "growth-messages",
        "growth",
        _parts("{messages:,} messages stored", "a new topic", "the big topic"),
        _grown_by("messages"),
        {"messages": 50_000_000, "rounds": 4, "work": FULL},
        {"messages": 200_000, "rounds": 1, "work": LITTLE},
        rounds_max=1,
        seconds=360,
        quick_seconds=25,
        in_quick=False,
    ),
    Work(
        "growth-topics",
        "growth",
        _parts("{topics:,} topics", "a new topic"),
        _grown_by("topics"),
        {"topics": 1_000, "rounds": 4, "work": FULL},
        {"topics": 20, "rounds": 1, "work": LITTLE},
        rounds_max=1,
        seconds=110,
        quick_seconds=12,
        in_quick=False,
    ),
    Work(
        "growth-connections",
        "growth",
        _parts("{connections:,} idle connections", "a new topic"),
        _grown_by("connections"),
        {"connections": 1_000, "rounds": 4, "work": FULL},
        {"connections": 100, "rounds": 1, "work": LITTLE},
        rounds_max=1,
        seconds=110,
        quick_seconds=10,
        in_quick=False,
    ),
)
