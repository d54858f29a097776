"""Rounds, interleaved over the systems, so that a ratio compares like with like on a machine whose pace changes."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bench.figures import SEALANE, Figure, thinned
from bench.machine import Disturbance
from bench.records import Failure
from bench.work import Reading, Work

if TYPE_CHECKING:
    from bench.peers.peer import Peer

TOLD_CHARACTERS = 2_000


class System(Protocol):
    """Something that works are measured on."""

    @property
    def name(self) -> str: ...

    def does(self, work: Work) -> bool: ...

    def measure(self, work: Work, amounts: dict[str, Any]) -> Reading:
        """One round, from nothing: an empty directory, a server that has just started."""


@dataclass(frozen=True, slots=True)
class Sealane:
    """Each work starts what it needs by itself."""

    directory: Path
    name: str = SEALANE

    def does(self, work: Work) -> bool:
        return True

    def measure(self, work: Work, amounts: dict[str, Any]) -> Reading:
        with empty_directory(self.directory) as path:
            return work.measure(path, amounts)


@dataclass(frozen=True, slots=True)
class BesidePeer:
    """A peer, its server started for each round as Sealane's is."""

    peer: Peer
    directory: Path

    @property
    def name(self) -> str:
        return self.peer.name

    def does(self, work: Work) -> bool:
        return work.beside is not None

    def measure(self, work: Work, amounts: dict[str, Any]) -> Reading:
        assert work.beside is not None
        with empty_directory(self.directory) as path, self.peer.running(path) as address:
            return work.beside(self.peer, address, amounts)


@contextmanager
def empty_directory(directory: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sealane-bench-", dir=directory))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Watcher(Protocol):
    """Is told of each step of a run."""

    def begins(self, work: Work, system: str, round_number: int) -> None: ...

    def ends(self, work: Work, system: str, round_number: int) -> None: ...


@dataclass(slots=True)
class Course:
    """All rounds of one work on one system."""

    readings: list[Reading] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    figures: list[Figure]
    failures: list[Failure]


def measure_beside(
    work: Work, systems: Sequence[System], *, rounds: int, quick: bool, run: str, watcher: Watcher
) -> Outcome:
    """So many rounds of a work on all systems that do it; every other round takes the systems backwards.

    A system that fails is told of in the outcome, and not tried again; the others go on.
    """
    doing = [system for system in systems if system.does(work)]
    courses = {system.name: Course() for system in doing}
    amounts = work.amounts_for(quick)
    for number in range(min(rounds, work.rounds_max)):
        for system in doing if number % 2 == 0 else reversed(doing):
            course = courses[system.name]
            if course.error is None:
                watcher.begins(work, system.name, number)
                watch = Disturbance.begin()
                try:
                    reading = system.measure(work, amounts)
                except Exception as problem:
                    course.error = told(problem)
                else:
                    course.readings.append(reading)
                    course.foreign.extend(reading.foreign or [watch.foreign_share()])
            watcher.ends(work, system.name, number)
    outcome = Outcome([], [])
    for name, course in courses.items():
        if course.error is not None:
            outcome.failures.append(Failure(work.name, name, course.error, run))
        else:
            outcome.figures.extend(figures_of(work, name, course, amounts, run))
    return outcome


def figures_of(work: Work, system: str, course: Course, amounts: dict[str, Any], run: str) -> list[Figure]:
    """A figure for each part of a work that its rounds have told of."""
    figures = []
    notes = dict(course.readings[-1].notes)
    for part in work.parts:
        values = tuple(value for reading in course.readings for value in reading.of(part.name))
        if not values:
            continue
        together = [each for reading in course.readings for each in reading.distributions.get(part.name, ())]
        lasting = course.readings[-1].courses.get(part.name, ())
        figures.append(
            Figure(
                work.titled(part, amounts, beside=system != SEALANE),
                part.unit,
                statistics.median(values),
                values,
                part.reach if system == SEALANE else None,
                part.less_is_better,
                notes,
                system,
                work.name,
                part.name,
                thinned(together) if together else tuple(round(each, 4) for each in lasting),
                tuple(round(share, 4) for share in course.foreign),
                run,
            )
        )
    return figures


def told(problem: BaseException) -> str:
    """What an error says, its beginning and its end where that is much, and where it was raised."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = f"{type(problem).__name__}{where}: {problem}".strip()
    return text if len(text) <= 2 * TOLD_CHARACTERS else f"{text[:TOLD_CHARACTERS]}\n…\n{text[-TOLD_CHARACTERS:]}"
