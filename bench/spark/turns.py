"""Jobs that take turns in one warm session, so that a ratio compares like with like."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from bench.machine import Disturbance
from bench.process_tree import processor_seconds


@dataclass(frozen=True, slots=True)
class Job:
    """Something to time, and what is put in order after it, which is not timed."""

    run: Callable[[], None]
    rows: int
    clear: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Rounds:
    """What all rounds have told."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    """Rows a second of each job, by its name."""
    foreign: list[float] = field(default_factory=list)
    """Of all processor time that there was in a round, the share that others had."""


def take_turns(jobs: Mapping[str, Job], *, rounds: int, warm_rounds: int) -> Rounds:
    """Each job once a round; every other round takes them backwards. Rounds that warm up are not told of."""
    found = Rounds({name: [] for name in jobs})
    # Everything that belongs to the measurement, the node too, was started by the process that started this one.
    own = partial(processor_seconds, os.getppid())
    for number in range(warm_rounds + rounds):
        watch = Disturbance.begin(own)
        turn = list(jobs.items())
        for name, job in turn if number % 2 == 0 else reversed(turn):
            seconds = _timed(job)
            if number >= warm_rounds:
                found.rates[name].append(job.rows / seconds)
        if number >= warm_rounds:
            found.foreign.append(watch.foreign_share())
    return found


def _timed(job: Job) -> float:
    begun = time.perf_counter()
    job.run()
    seconds = time.perf_counter() - begun
    job.clear()
    return seconds
