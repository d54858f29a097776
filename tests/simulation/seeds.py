"""Run many seeds on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.simulation.scenarios import draw, play

SEEDS_TOGETHER = 4
"""Seeds that a worker takes at a time: enough that handing them out costs nothing, few enough to end together."""


@dataclass(frozen=True)
class Outcome:
    """What is worth knowing of a run, small enough to send between processes."""

    seed: int
    scenario: str
    violations: tuple[str, ...]
    digest: str
    lives: int
    faults: int
    seconds: float
    """CPU time."""


@dataclass
class Tally:
    outcomes: list[Outcome] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    """Real time."""

    @property
    def per_minute(self) -> float:
        return 60 * len(self.outcomes) / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        lives = sum(outcome.lives for outcome in self.outcomes)
        faults = sum(outcome.faults for outcome in self.outcomes)
        return (
            f"{len(self.outcomes)} seeds, {len(self.failed)} failed, {lives} lives, {faults} faults, "
            f"{self.per_minute:,.0f} seeds a minute"
        )


def run_seed(work: tuple[int, str | None]) -> Outcome:
    seed, name = work
    scenario = draw(seed, name)
    begun = time.process_time()
    report = play(scenario)
    seconds = time.process_time() - begun
    violations = tuple(map(str, report.violations))
    return Outcome(seed, scenario.name, violations, report.digest, report.lives, report.faults_happened, seconds)


def run_seeds(
    seeds: Sequence[int], name: str | None, *, jobs: int, progress: Callable[[Tally], None] = lambda tally: None
) -> Tally:
    """Run them all, whatever fails; `progress` is called after each."""
    tally = Tally()
    begun = time.monotonic()
    for outcome in _outcomes([(seed, name) for seed in seeds], jobs):
        tally.outcomes.append(outcome)
        if outcome.violations:
            tally.failed.append(outcome)
        tally.seconds = time.monotonic() - begun
        progress(tally)
    tally.failed.sort(key=lambda outcome: outcome.seed)
    return tally


def _outcomes(work: list[tuple[int, str | None]], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(run_seed, work)
        return
    # Fresh processes: what this one has loaded, and the threads of its libraries, do not get into the runs.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, initializer=_settle_in) as pool:
        yield from pool.imap_unordered(run_seed, work, chunksize=SEEDS_TOGETHER)


def _settle_in() -> None:
    # What is loaded now stays loaded: the collection at the end of each run need not look at it again.
    gc.collect()
    gc.freeze()
