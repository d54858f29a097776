"""What a run shows while it goes on: which work, which system, which round, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from bench.running import System
from bench.work import Work

SERVER_SECONDS = 2.0
"""About what a peer's server takes to start and end."""


class TimeLeft(ProgressColumn):
    """Counts down to the foretold end, also while a long step goes on."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = max(0.0, task.fields["ends_at"] - time.monotonic())
        return Text(f"{timedelta(seconds=round(left))} left", style="cyan")


class Expectation:
    """Foretells the seconds of steps: as long as the same step took last, or as its work says."""

    def __init__(self, quick: bool) -> None:
        self._quick = quick
        self._took: dict[tuple[str, str], float] = {}

    def of(self, work: Work, system: str) -> float:
        stated = work.quick_seconds if self._quick else work.seconds
        return self._took.get((work.name, system), stated + (0.0 if system == "sealane" else SERVER_SECONDS))

    def learn(self, work: Work, system: str, seconds: float) -> None:
        self._took[work.name, system] = seconds


class Display:
    """Watches a run, and shows it where there is a terminal."""

    def __init__(self, console: Console, steps: Sequence[tuple[Work, str]], *, rounds: int, quick: bool) -> None:
        self._left = list(steps)
        self._rounds = rounds
        self._expectation = Expectation(quick)
        self._last = time.monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("[bold]{task.description}"),
            TimeElapsedColumn(),
            TimeLeft(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=len(self._left), ends_at=self._ends_at())

    def begins(self, work: Work, system: str, round_number: int) -> None:
        of = min(self._rounds, work.rounds_max)
        what = f"{work.name} · {system} · round {round_number + 1} of {of}"
        self._progress.update(self._task, description=what, ends_at=self._ends_at())

    def ends(self, work: Work, system: str, round_number: int) -> None:
        now = time.monotonic()
        self._expectation.learn(work, system, now - self._last)
        self._last = now
        if (work, system) in self._left:
            self._left.remove((work, system))
        self._progress.update(self._task, advance=1, ends_at=self._ends_at())

    def _ends_at(self) -> float:
        return time.monotonic() + sum(self._expectation.of(work, system) for work, system in self._left)

    def __enter__(self) -> Self:
        self._progress.start()
        self._last = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def steps(works: Sequence[Work], systems: Sequence[System], rounds: int) -> list[tuple[Work, str]]:
    """Everything that a run will do: each work on each system, as often as there are rounds."""
    return [
        (work, system.name)
        for work in works
        for system in systems
        if system.does(work)
        for _ in range(min(rounds, work.rounds_max))
    ]
