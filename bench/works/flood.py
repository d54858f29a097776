"""What a flood of connections costs those who are inside."""

from __future__ import annotations

from pathlib import Path

from bench import flood
from bench.figures import percentile
from bench.work import Amounts, Part, Reading, Work

_WHEN = {"before": "before a flood", "meanwhile": "in a flood of connections, {at_once} held", "after": "after it"}
_PERCENTS = (50, 99)


def _flooded(path: Path, amounts: Amounts) -> Reading:
    taken = flood.latencies(path, **amounts)
    values = {f"{when}-p{p}": percentile(getattr(taken, when), p) for when in _WHEN for p in _PERCENTS}
    return Reading(values, notes={"meanwhile-p50": f"{taken.opens:,} connections came"})


FLOOD = (
    Work(
        "flooded",
        "flood",
        tuple(
            Part(f"{when}-p{p}", f"{{per_second:,}} single publishes a second, {said}, p{p}", "ms", less_is_better=True)
            for when, said in _WHEN.items()
            for p in _PERCENTS
        ),
        _flooded,
        {"count": 2_500, "per_second": 500, "at_once": 200},
        {"count": 500},
        seconds=20,
        quick_seconds=7,
        in_quick=False,
    ),
)
