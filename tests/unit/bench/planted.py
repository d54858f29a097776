"""Works, systems and results that are made up, so that what is told of them is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import SEALANE, Figure, thinned
from bench.records import Failure, Record, Run, Stated
from bench.report import PEERS, Results
from bench.work import Part, Reading, Work
from bench.works import WORKS

EARLY, LATE = "2026-01-02 03:04:05", "2026-02-03 04:05:06"


def work(name: str = "speed", **fields: Any) -> Work:
    parts = (Part("rate", "{count:,} messages", "msg/s", 100.0, ratio_reach=2.0),)
    told = {
        "group": "wire",
        "parts": parts,
        "measure": lambda path, amounts: Reading({"rate": float(amounts["count"])}),
        "amounts": {"count": 1_000},
        "quick": {"count": 10},
        "beside": lambda peer, address, amounts: Reading({"rate": 1.0}),
    }
    return Work(name, **{**told, **fields})


@dataclass
class PlantedSystem:
    """Tells the values that it was given, one a round; an error among them is raised."""

    name: str
    values: Sequence[float | Exception]
    log: list[str] = field(default_factory=list)
    rounds: int = 0

    def does(self, work: Work) -> bool:
        return True

    def measure(self, work: Work, amounts: dict[str, Any]) -> Reading:
        self.log.append(self.name)
        value = self.values[self.rounds]
        self.rounds += 1
        if isinstance(value, Exception):
            raise value
        return Reading(
            {"rate": value}, distributions={"rate": [value, value + 1]}, notes={"count": f"{amounts['count']}"}
        )


class Silent:
    """Watches without a word, and counts."""

    def __init__(self) -> None:
        self.ended = 0

    def begins(self, work: Work, system: str, round_number: int) -> None: ...

    def ends(self, work: Work, system: str, round_number: int) -> None:
        self.ended += 1


def figure(work: str, part: str, system: str, rounds: Sequence[float], **fields: Any) -> Figure:
    value = sorted(rounds)[len(rounds) // 2]
    told: Mapping[str, Any] = {"name": f"{work} {part}", "unit": "msg/s", "foreign": (0.01, 0.02), "run": LATE}
    return Figure(
        **{**told, "value": value, "rounds": tuple(rounds), "system": system, "work": work, "part": part, **fields}
    )


def stated(name: str, title: str, *, durable: bool = True, missing: str | None = None) -> Stated:
    return Stated(name, title, durable, "synced each second", "pipelines of 500", {name: "1.2"}, missing, LATE)


def run(moment: str = LATE) -> Run:
    return Run(moment, "make bench", {"cpu": "2 × abacus", "sealane's revision": "abc", "sync of 1.2 KB": "p50 0.1 ms"})


def results() -> Results:
    """Sealane at eight times the quick peer, a ceiling without a disk, a missing peer, and a work that failed."""
    latencies = [0.3 + index / 10_000 for index in range(5_000)]
    ours = Record(
        {LATE: run()},
        [
            figure("wire-batches", "rate", SEALANE, (1_500_000, 1_600_000, 1_700_000), reach=1_200_000),
            figure("wire-1k", "rate", SEALANE, (200_000, 210_000, 220_000)),
            figure("wire-1k", "megabytes", SEALANE, (205, 215, 225), unit="MB/s"),
        ],
        [Failure("wire-blocking", SEALANE, "ClientFailed: it ended\nTraceback\nValueError: no such thing", LATE)],
    )
    latency = Record(
        {EARLY: run(EARLY)},
        [
            figure(
                "latency",
                "received-p50",
                SEALANE,
                (0.5, 0.55, 0.6),
                unit="ms",
                less_is_better=True,
                reach=0.4,
                samples=thinned(latencies),
                run=EARLY,
            )
        ],
    )
    memory = Record(
        {LATE: run()},
        [figure("memory-over-time", "growth", SEALANE, (0.1,), unit="%", samples=tuple(range(100, 160)))],
    )
    grown = Record(
        {LATE: run()},
        [
            figure("growth-topics", part, SEALANE, rounds, unit="× empty", reach=1.1, less_is_better=True)
            for part, rounds in (("new-batches", (0.98, 1.01, 1.04)), ("new-singles", (1.15, 1.2, 1.3)))
        ],
    )
    peers = Record(
        {LATE: run()},
        [
            figure("wire-batches", "rate", "quick", (180_000, 200_000, 170_000)),
            figure("wire-batches", "rate", "slow", (5_000, 5_100, 5_200)),
            figure("wire-batches", "rate", "ceiling", (2_000_000, 2_100_000, 2_200_000)),
            figure("wire-1k", "rate", "quick", (100_000, 105_000, 110_000)),
            figure(
                "latency",
                "received-p50",
                "quick",
                (1.0, 1.1, 1.2),
                unit="ms",
                less_is_better=True,
                samples=thinned([each * 3 for each in latencies]),
            ),
        ],
        [],
        [
            stated("quick", "Quick Streams"),
            stated("slow", "Slow Queue"),
            stated("ceiling", "No Disk", durable=False),
            stated("gone", "Gone MQ", missing="Gone MQ: its server is missing; run: sudo apt-get install gone"),
        ],
    )
    return Results(WORKS, {"wire": ours, "latency": latency, "memory": memory, "growth": grown, PEERS: peers})


def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")
