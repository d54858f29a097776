"""What `bench/results` remembers: the figures of every group in a JSON file, each with the run that it comes from.

A run replaces the figures of what it measured and leaves the others, so that a part can be measured again alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure

VERSION = 2
"""Files of another version are not read; the next run writes them anew."""


@dataclass(frozen=True, slots=True)
class Run:
    """One call of the bench."""

    moment: str
    """When it began, UTC, to the second."""
    command: str
    machine: dict[str, str]


@dataclass(frozen=True, slots=True)
class Failure:
    """A work that could not be measured, and why."""

    work: str
    system: str
    error: str
    run: str


@dataclass(frozen=True, slots=True)
class Stated:
    """What a system says of itself, or why it could not take part."""

    name: str
    title: str
    durable: bool
    durability: str
    settings: str
    versions: dict[str, str]
    missing: str | None = None
    run: str = ""


@dataclass(slots=True)
class Record:
    """All that is known of a group."""

    runs: dict[str, Run] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    systems: list[Stated] = field(default_factory=list)

    def with_news(self, news: Record) -> Record:
        """The same, with everything that was measured again, or failed to be, as the news have it."""
        measured: list[Figure | Failure] = [*news.figures, *news.failures]
        again = {(each.work, each.system) for each in measured}
        stated = {each.name for each in news.systems}
        merged = Record(
            self.runs | news.runs,
            [each for each in self.figures if (each.work, each.system) not in again] + news.figures,
            [each for each in self.failures if (each.work, each.system) not in again] + news.failures,
            [each for each in self.systems if each.name not in stated] + news.systems,
        )
        kept: list[Figure | Failure | Stated] = [*merged.figures, *merged.failures, *merged.systems]
        used = {each.run for each in kept}
        merged.runs = {moment: run for moment, run in merged.runs.items() if moment in used}
        return merged

    def without_unknown(self, works: Iterable[str]) -> Record:
        """The same, without figures and failures of works that are no more."""
        known = set(works)
        return Record(
            self.runs,
            [each for each in self.figures if each.work in known],
            [each for each in self.failures if each.work in known],
            self.systems,
        )


def read(path: Path) -> Record:
    """What a file remembers; nothing where there is none, or one of another version."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Record()
    if raw.get("version") != VERSION:
        return Record()
    return Record(
        {each["moment"]: Run(**each) for each in raw["runs"]},
        [_figure(each) for each in raw["figures"]],
        [Failure(**each) for each in raw["failures"]],
        [Stated(**each) for each in raw["systems"]],
    )


def write(path: Path, record: Record) -> None:
    raw = {
        "version": VERSION,
        "runs": [asdict(record.runs[moment]) for moment in sorted(record.runs)],
        "figures": [asdict(each) for each in record.figures],
        "failures": [asdict(each) for each in record.failures],
        "systems": [asdict(each) for each in record.systems],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_compact(raw) + "\n", encoding="utf-8")


def _figure(raw: dict[str, Any]) -> Figure:
    lists = {name: tuple(raw[name]) for name in ("rounds", "samples", "foreign")}
    return Figure(**(raw | lists))


def _compact(raw: dict[str, Any]) -> str:
    """Indented, with each list of numbers on one line: readable, and small when compared with the last one."""
    held: list[str] = []

    def hold(value: Any) -> Any:
        if isinstance(value, list | tuple) and value and all(isinstance(each, int | float) for each in value):
            held.append(json.dumps([float(f"{each:.6g}") for each in value]))
            return f"\x00{len(held) - 1}\x00"
        if isinstance(value, list | tuple):
            return [hold(each) for each in value]
        if isinstance(value, dict):
            return {key: hold(each) for key, each in value.items()}
        return value

    text = json.dumps(hold(raw), indent=2, ensure_ascii=False)
    for index, line in enumerate(held):
        text = text.replace(f'"\\u0000{index}\\u0000"', line)
    return text
