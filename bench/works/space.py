"""What a node takes of the machine: memory and disk."""

from __future__ import annotations

from pathlib import Path

from bench import disk, memory
from bench.work import Amounts, Part, Reading, Work

FLAT = memory.Trend.FLAT_SHARE_MAX * 100


def _idle(path: Path, amounts: Amounts) -> Reading:
    return Reading({"idle": memory.idle(path)})


def _stored(path: Path, amounts: Amounts) -> Reading:
    found = memory.stored_in_parts(path, **amounts)
    return Reading(
        {
            "stored": found.resident_mb,
            "published": found.published.resident_mb,
            "consumed": found.consumed.resident_mb,
            "private": max(found.published.private_mb, found.consumed.private_mb),
        }
    )


def _over_time(path: Path, amounts: Amounts) -> Reading:
    readings = memory.over_time(path, **amounts)
    trend = memory.trend(readings)
    megabytes = [each for _, each in readings]
    values = {"growth": trend.growth_mb / trend.level_mb * 100, "slope": trend.mb_per_minute, "most": max(megabytes)}
    return Reading(values, courses={"growth": megabytes})


def _compacted(path: Path, amounts: Amounts) -> Reading:
    found = disk.compacted_in_parts(path, **amounts)
    return Reading({"compacted": found.compacted_mb, "log": found.log_mb, "rest": found.rest_mb})


def _sequential(path: Path, amounts: Amounts) -> Reading:
    return Reading({"sequential": disk.sequential(path)})


SPACE = (
    Work(
        "memory-idle",
        "memory",
        (Part("idle", "memory of an idle node", "MB", 130, True),),
        _idle,
        {},
        rounds_max=3,
        seconds=4,
        quick_seconds=3,
    ),
    Work(
        "memory-stored",
        "memory",
        (
            Part(
                "stored", "memory with {messages:,} messages stored, before or after they are consumed", "MB", 250, True
            ),
            Part("published", "the same, before", "MB", less_is_better=True),
            Part("consumed", "the same, after", "MB", less_is_better=True),
            Part("private", "the same, without what it shares with other processes", "MB", less_is_better=True),
        ),
        _stored,
        {"messages": 1_000_000},
        {"messages": 200_000},
        rounds_max=3,
        seconds=10,
        quick_seconds=4,
    ),
    Work(
        "memory-over-time",
        "memory",
        (
            Part(
                "growth", "memory over {seconds} s at {per_second:,} msg/s: growth in the second half", "%", FLAT, True
            ),
            Part("slope", "the same, its slope", "MB/min", less_is_better=True),
            Part("most", "the same, the most that was held", "MB", less_is_better=True),
        ),
        _over_time,
        {"seconds": 300, "per_second": 100_000},
        {"seconds": 6, "per_second": 20_000},
        rounds_max=1,
        seconds=310,
        quick_seconds=10,
        in_quick=False,
    ),
    Work(
        "disk-compacted",
        "disk",
        (
            Part("compacted", "disk, {messages:,} × 100 B of random payloads, compacted", "MB", 110, True),
            Part("log", "beside it, the log: the segments in use and to come, at full length", "MB", None, True),
            Part("rest", "beside it, metadata and keys", "MB", None, True),
        ),
        _compacted,
        {"messages": 1_000_000},
        {"messages": 100_000},
        rounds_max=1,
        seconds=30,
        quick_seconds=5,
    ),
    Work(
        "disk-sequential",
        "disk",
        (Part("sequential", "the disk alone, large writes, each with its fdatasync", "MB/s"),),
        _sequential,
        {},
        rounds_max=3,
        seconds=3,
        quick_seconds=2,
    ),
)
