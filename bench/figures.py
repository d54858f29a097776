"""A figure: what was measured, how much was asked for, and on which way it was found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of several rounds; all of them are kept."""

    name: str
    unit: str
    value: float
    rounds: tuple[float, ...]
    reach: float | None = None
    """What it should be at least (or at most, if less is better)."""
    less_is_better: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        if self.reach is None:
            return None
        return self.value <= self.reach if self.less_is_better else self.value >= self.reach


def write_report(
    directory: Path, name: str, command: str, facts: dict[str, str], figures: Sequence[Figure], remarks: str = ""
) -> Path:
    """A Markdown table for people and the raw numbers for programs, side by side."""
    directory.mkdir(parents=True, exist_ok=True)
    raw = {"command": command, "machine": facts, "figures": [asdict(figure) for figure in figures]}
    (directory / f"{name}.json").write_text(json.dumps(raw, indent=2) + "\n")
    lines = [
        f"# {name}",
        "",
        f"Made by `{command}`.",
        "",
        "| what | figure | reach | | rounds | notes |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(figure) for figure in figures]
    lines += ["", "| machine | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items())]
    if remarks:
        lines += ["", remarks]
    report = directory / f"{name}.md"
    report.write_text("\n".join(lines) + "\n")
    return report


def _row(figure: Figure) -> str:
    sign = "≤" if figure.less_is_better else "≥"
    reach = "" if figure.reach is None else f"{sign} {_number(figure.reach)}"
    verdict = {None: "", True: "reached", False: "**short**"}[figure.reached]
    rounds = ", ".join(_number(value) for value in figure.rounds)
    notes = "; ".join(f"{key} {value}" for key, value in figure.notes.items())
    return f"| {figure.name} | {_number(figure.value)} {figure.unit} | {reach} | {verdict} | {rounds} | {notes} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
