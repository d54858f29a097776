"""Many clients at a time: one to many, and a crowd on one topic."""

from __future__ import annotations

from pathlib import Path

from bench import crowd, fan_out
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work, inner_directory


def _fan_out(path: Path, amounts: Amounts) -> Reading:
    return Reading({"rate": fan_out.rate(path, **amounts)})


def _crowd(path: Path, amounts: Amounts) -> Reading:
    # The same clients, one of each: they have every ack confirmed, which those of other works do not.
    one_of_each = {**amounts, "producers": 1, "consumers": 1, "partitions": 1}
    pair = crowd.rate(inner_directory(path, "pair"), **one_of_each)
    everyone = crowd.rate(inner_directory(path, "crowd"), **amounts)
    return Reading({"rate": everyone, "ratio": everyone / pair, "pair": pair})


MANY = (
    Work(
        "fan-out",
        "fan-out",
        (Part("rate", "100 B, 1 → {consumers} broadcast, publish_many of {batch:,}", "deliveries/s", 1_500_000),),
        _fan_out,
        {"count": 1_000_000, "batch": 5_000, "consumers": 10},
        {"count": 100_000},
        seconds=12,
        quick_seconds=4,
    ),
    Work(
        "crowd",
        "crowd",
        (
            Part(
                "ratio",
                "{producers} producers, {consumers} consumers, {partitions} partitions, ÷ a single pair",
                "×",
                1.0,
            ),
            Part("rate", "the same, all of them together", MESSAGE_RATE),
            Part("pair", "the single pair, in the same round and with the same clients", MESSAGE_RATE),
        ),
        _crowd,
        {"count": 12_000_000, "batch": 5_000, "producers": 4, "consumers": 4, "partitions": 8},
        {"count": 200_000},
        seconds=25,
        quick_seconds=6,
    ),
)
