"""What a flood of connections costs those who are inside."""

from __future__ import annotations

from pathlib import Path

from bench import flood
from bench.figures import percentile
from bench.work import Amounts, Part, Reading, Work

_PERCENTS = (50, 99)


def _flooded(path: Path, amounts: Amounts) -> Reading:
    taken = flood.latencies(path, **amounts)
    whens = {"before": taken.before, "meanwhile": taken.meanwhile, "after": taken.after}
    values = {f"{when}-p{p}": percentile(took, p) for when, took in whens.items() for p in _PERCENTS}
    return Reading(values, notes={"meanwhile-p50": f"{taken.opens:,} connections came"})


def _work(name: str, flood_of: str, **amounts: bool) -> Work:
    said = {"before": "before a flood", "meanwhile": f"in a flood of {flood_of}, {{at_once}} held", "after": "after it"}
    return Work(
        name,
        "flood",
        tuple(
            Part(f"{when}-p{p}", f"{{per_second:,}} single publishes a second, {text}, p{p}", "ms", less_is_better=True)
            for when, text in said.items()
            for p in _PERCENTS
        ),
        _flooded,
        {"count": 2_500, "per_second": 500, "at_once": 200, **amounts},
        {"count": 500},
        seconds=20,
        quick_seconds=7,
        in_quick=False,
    )


FLOOD = (
    _work("flooded", "connections"),
    _work("flooded-by-handshakes", "TLS handshakes", handshakes=True),
)
