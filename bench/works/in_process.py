"""The broker inside one process, and how long it takes to be ready."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from bench import in_process, start_up
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work, inner_directory


def _inside(work: Callable[..., Coroutine[Any, Any, float]]) -> Callable[[Path, Amounts], Reading]:
    return lambda path, amounts: Reading({"rate": uvloop.run(work(path, **amounts))})


def _starts(path: Path, amounts: Amounts) -> Reading:
    values = {}
    for part, fill in (("stopped", start_up.fill_now), ("crashed", start_up.crash_while_filled)):
        place = inner_directory(path, part)
        fill(place, **amounts)
        values[part] = uvloop.run(start_up.ready_seconds(place))
    return Reading(values)


IN_PROCESS = (
    Work(
        "batches",
        "in-process",
        (Part("rate", "100 B, publish_many of {batch:,}, grant, ack", MESSAGE_RATE, 1_500_000),),
        _inside(in_process.batches),
        {"count": 600, "batch": 5_000},
        {"count": 60},
        quick_seconds=1,
    ),
    Work(
        "batches-100",
        "in-process",
        (Part("rate", "100 B, publish_many of {batch:,}, grant, ack", MESSAGE_RATE),),
        _inside(in_process.batches),
        {"count": 5_000, "batch": 100, "in_flight": 8},
        {"count": 500},
        quick_seconds=1,
    ),
    Work(
        "singles",
        "in-process",
        (Part("rate", "100 B, single publishes one after another", MESSAGE_RATE, 3_000),),
        _inside(in_process.singles),
        {"count": 10_000, "in_flight": 1},
        {"count": 1_000},
        quick_seconds=1,
    ),
    Work(
        "singles-64",
        "in-process",
        (Part("rate", "100 B, single publishes, {in_flight} in flight", MESSAGE_RATE, 50_000),),
        _inside(in_process.singles),
        {"count": 200_000, "in_flight": 64},
        {"count": 20_000},
        quick_seconds=1,
    ),
    Work(
        "one-by-one",
        "in-process",
        (Part("rate", "100 B, producer.send, async for message, ack", MESSAGE_RATE),),
        _inside(in_process.one_by_one),
        {"count": 400_000},
        {"count": 40_000},
        quick_seconds=1,
    ),
    Work(
        "start-up",
        "start-up",
        (
            Part("stopped", "ready after a stop, {topics:,} topics, {messages:,} messages", "s", 5.0, True),
            Part("crashed", "ready after a crash, {topics:,} topics, {messages:,} messages", "s", 30.0, True),
        ),
        _starts,
        {"topics": 1_000, "messages": 10_000_000},
        {"topics": 10, "messages": 100_000},
        rounds_max=1,
        seconds=120,
        quick_seconds=6,
    ),
)

PROFILED = ("batches", "singles", "singles-64")
"""Those whose profiles by function are worth keeping."""
