"""`--compare A B`: whether a change made it faster, by rounds that take turns between two versions of the code.

The benchmark is this tree's for both; the node and the clients import `sealane` from the version that is measured.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import one_round
from bench.figures import number
from bench.machine import Disturbance
from bench.progress import Display
from bench.running import empty_directory
from bench.significance import PAIRS_MIN, Interval, interval
from bench.trees import ROOT, NoSuchTree, Tree, python, tree
from bench.work import Part, Work

WORKS = ("wire-batches", "wire-batches-100", "wire-one-by-one", "latency")
"""What is compared where nothing is named."""
ROUND_SECONDS_MAX = 900.0
LEFT_OUT = ("-p95", "-p99.9")
"""Of a distribution, its middle and one part of its tail say enough."""


class RoundFailed(RuntimeError):
    """A round ended badly, or measured other code than it should have."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One value of a work, on both."""

    work: str
    part: str
    title: str
    unit: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    speed: Interval
    """How many times faster B is: more of what should be much, or less of what should be little."""
    foreign: float

    @property
    def verdict(self) -> str:
        return self.speed.verdict


def main(
    first: str,
    second: str,
    works: Sequence[Work],
    rounds: int,
    quick: bool,
    directory: Path,
    as_json: bool,
    console: Console,
) -> int:
    """Compare, and print what was found. The exit code says whether it could be measured, not which one won."""
    if rounds < PAIRS_MIN:
        console.print(f"--rounds {rounds}: fewer than {PAIRS_MIN} tell nothing with 95 % confidence")
        return 2
    with ExitStack() as cleaning:
        try:
            trees = [
                cleaning.enter_context(tree(name, cleaning.enter_context(empty_directory(directory))))
                for name in (first, second)
            ]
        except NoSuchTree as problem:
            console.print(escape(str(problem)))
            return 2
        steps = [(work, name) for work in works for _ in range(rounds) for name in ("A", "B")]
        with Display(console, steps, rounds=rounds, quick=quick) as display:
            compared: list[Compared] = []
            problems: list[str] = []
            for work in works:
                try:
                    compared += compare(work, trees, rounds, quick, directory, display)
                except RoundFailed as problem:
                    problems.append(f"{work.name}: {problem}")
    if as_json:
        print(json.dumps(_raw(trees, compared, problems), indent=2))
    else:
        console.print(_table(trees, compared))
    for line in problems:
        console.print(f"[red]failed[/] {escape(line)}")
    return 1 if problems else 0


def compare(
    work: Work, trees: Sequence[Tree], rounds: int, quick: bool, directory: Path, display: Display
) -> list[Compared]:
    """A B, B A, A B …: each pair side by side in time, and neither always first."""
    values: dict[str, list[dict[str, float]]] = {"A": [], "B": []}
    foreign = []
    for number_of_round in range(rounds):
        pair = list(zip(("A", "B"), trees, strict=True))
        for side, code in pair if number_of_round % 2 == 0 else reversed(pair):
            display.begins(work, side, number_of_round)
            watch = Disturbance.begin()
            values[side].append(measured(work, code, quick, directory))
            foreign.append(watch.foreign_share())
            display.ends(work, side, number_of_round)
    return summed_up(work, work.amounts_for(quick), values["A"], values["B"], statistics.median(foreign))


def summed_up(
    work: Work,
    amounts: dict[str, Any],
    first: Sequence[dict[str, float]],
    second: Sequence[dict[str, float]],
    foreign: float,
) -> list[Compared]:
    """Each part of a work that both have, and whose values can be in a ratio."""
    found = []
    for part in work.parts:
        if part.name.endswith(LEFT_OUT):
            continue
        a, b = (tuple(each.get(part.name, 0.0) for each in side) for side in (first, second))
        if min(*a, *b) > 0:
            found.append(
                Compared(work.name, part.name, work.titled(part, amounts), part.unit, a, b, _speed(part, a, b), foreign)
            )
    return found


def _speed(part: Part, a: Sequence[float], b: Sequence[float]) -> Interval:
    return interval(b, a) if part.less_is_better else interval(a, b)


def measured(work: Work, code: Tree, quick: bool, directory: Path) -> dict[str, float]:
    """One round, in a process that imports this code and no other."""
    with empty_directory(directory) as path:
        try:
            ended = subprocess.run(
                python(one_round.MODULE, work.name, str(path), "quick" if quick else "full"),
                cwd=ROOT,
                env=code.environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=ROUND_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            raise RoundFailed(f"a round of {code.name} was not done within {ROUND_SECONDS_MAX:g} s") from None
    if ended.returncode:
        raise RoundFailed(f"a round of {code.name} failed:\n{ended.stderr[-2_000:]}")
    told = json.loads(ended.stdout.splitlines()[-1])
    for package in told["packages"]:
        if not code.has(package):
            raise RoundFailed(f"a round of {code.name} ran {package}, not {code.source / 'sealane'}")
    values: dict[str, float] = told["values"]
    return values


def _table(trees: Sequence[Tree], compared: Sequence[Compared]) -> Table:
    a, b = trees
    table = Table(title=f"B = {b.name} ({b.revision}) against A = {a.name} ({a.revision})", title_justify="left")
    for column in ("work", "A, median", "B, median", "B ÷ A", "verdict on B", "foreign CPU"):
        table.add_column(column, no_wrap=column == "work", overflow="fold")
    for each in compared:
        table.add_row(
            each.work if each.part == "rate" else f"{each.work}, {each.part}",
            f"{number(statistics.median(each.a))} {each.unit}",
            f"{number(statistics.median(each.b))} {each.unit}",
            f"{statistics.median(each.b) / statistics.median(each.a):.3f}",
            each.verdict,
            f"{each.foreign:.0%}",
        )
    return table


def _raw(trees: Sequence[Tree], compared: Sequence[Compared], problems: Sequence[str]) -> dict[str, Any]:
    sides = {side: {"name": code.name, "revision": code.revision} for side, code in zip("ab", trees, strict=True)}
    works = [
        {
            **asdict(each),
            "a_median": statistics.median(each.a),
            "b_median": statistics.median(each.b),
            "verdict": each.verdict,
        }
        for each in compared
    ]
    return {**sides, "works": works, "failures": list(problems)}
