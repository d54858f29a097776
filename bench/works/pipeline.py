"""The whole pipeline: its rate over a backlog, what it costs by size, and how soon facts are seen."""

from __future__ import annotations

from pathlib import Path

from bench.figures import percentile
from bench.spark import sessions
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work

SIZES = ("small", "middle", "large")


def _backlog(path: Path, amounts: Amounts) -> Reading:
    from bench import pipeline

    found = pipeline.backlogs(path, **amounts)
    values = {"rate": amounts["sizes"][-1] / found["seconds"][-1]}
    for name, count, seconds, busy, state in zip(
        SIZES, amounts["sizes"], found["seconds"], found["processor_seconds"], found["state_bytes"], strict=True
    ):
        values[f"{name}-seconds"] = seconds
        values[f"{name}-processor"] = busy
        values[f"{name}-cost"] = busy / count * 1e6
        values[f"{name}-state"] = state / 1e3
    return Reading(values, foreign=found["foreign"])


def _steady(path: Path, amounts: Amounts) -> Reading:
    from bench import pipeline

    found = pipeline.steady(path, **amounts)
    ordered = sorted(found["took_seconds"])
    values = {"p50": percentile(ordered, 50), "p99": percentile(ordered, 99), "max": ordered[-1]}
    values["cycle"] = max(found["cycles"])
    return Reading(values, {"p50": ordered}, foreign=found["foreign"])


def _by_size(place: int, name: str) -> tuple[Part, ...]:
    backlog = f"a backlog of {{sizes[{place}]:,}}"
    return (
        Part(f"{name}-seconds", f"{backlog}: time", "s", less_is_better=True),
        Part(f"{name}-processor", f"{backlog}: processor time of all processes", "s", less_is_better=True),
        Part(f"{name}-cost", f"{backlog}: processor time of a message", "µs", less_is_better=True),
        Part(f"{name}-state", f"{backlog}: what steps leave to each other, afterwards", "KB", less_is_better=True),
    )


PIPELINE = (
    Work(
        "pipeline",
        "lake",
        (
            Part(
                "rate",
                "the whole pipeline over a backlog of {sizes[2]:,} × {size} B that were published, consumed and acked",
                MESSAGE_RATE,
                100_000,
            ),
            *(part for place, name in enumerate(SIZES) for part in _by_size(place, name)),
        ),
        _backlog,
        {
            "sizes": (250_000, 1_000_000, 4_000_000),
            "batch": 5_000,
            "size": 100,
            "warm_messages": 250_000,
            "warm_cycles": 3,
        },
        {"sizes": (20_000, 50_000, 100_000), "warm_messages": 10_000, "warm_cycles": 1},
        rounds_max=1,
        seconds=180,
        quick_seconds=40,
        in_quick=False,
        missing=sessions.missing,
    ),
    Work(
        "pipeline-freshness",
        "lake",
        (
            Part("p50", "{per_second:,} msg/s for {seconds} s: from an ack to the fact, p50", "s", None, True),
            Part("p99", "the same, p99", "s", None, True),
            Part("max", "the same, the last of all", "s", 30, True),
            Part("cycle", "the longest cycle meanwhile", "s", None, True),
        ),
        _steady,
        {
            "per_second": 100_000,
            "seconds": 60,
            "batch": 5_000,
            "size": 100,
            "warm_messages": 250_000,
            "warm_cycles": 3,
        },
        {"per_second": 20_000, "seconds": 8, "warm_messages": 10_000, "warm_cycles": 1},
        rounds_max=1,
        seconds=120,
        quick_seconds=40,
        in_quick=False,
        missing=sessions.missing,
    ),
)
