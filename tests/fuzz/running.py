"""Running a target without any guidance: inputs are spoiled again and again, and what is taken is spoiled further."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fuzz.keeping import kept
from tests.fuzz.memory import peak_growth
from tests.fuzz.target import Target

CORPUS_MAX = 512
"""Inputs that are spoiled further: a bounded number keeps the first ones in play."""
INPUT_SECONDS_MAX = 20.0
"""Of the processor's time, for one input of a few kilobytes: the slowest take a hundredth of a second."""
MEMORY_BYTES_MAX = 512 << 20
"""By which a run may make the process grow at its peak: the inputs are small, and nothing of them is to be kept."""
LOOK_INPUTS = 16
"""After so many, memory is looked at."""


class Finding(AssertionError):
    """An input that does what none may."""

    def __init__(self, target: Target, data: bytes, problem: str) -> None:
        super().__init__(
            f"the target {target.name!r} found a bug: {problem}\ninput ({len(data):,} bytes): {data.hex()}\n"
            f"keep it with: python -m tests.fuzz --only {target.name} --keep HEX"
        )
        self.data = data


@dataclass
class Tally:
    """What a run has come to."""

    tried: int = 0
    taken: int = 0
    slowest_seconds: float = 0.0
    grown_bytes: int = 0
    fresh: list[bytes] = field(default_factory=list)
    """Inputs that were taken, and were not there before."""

    def __str__(self) -> str:
        slowest, grown = f"{self.slowest_seconds * 1_000:.0f} ms", f"{self.grown_bytes / 2**20:.0f} MiB"
        return f"{self.tried:,} inputs, {self.taken:,} taken, the slowest {slowest}, memory +{grown}"


def run(
    target: Target,
    *,
    seed: int,
    seconds: float,
    inputs_min: int = 0,
    told: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Spoil inputs for so long, and at least so many. The same seed makes the same ones. Raises `Finding`."""
    choose = random.Random(seed)
    corpus = [*target.seeds, *kept(target.name)]
    tally = Tally()
    stop = time.monotonic() + seconds
    with quiet(), peak_growth() as growth:
        while time.monotonic() < stop or tally.tried < inputs_min:
            data = target.spoil(choose.choice(corpus), choose)
            if try_one(target, data, tally) and len(corpus) < CORPUS_MAX:
                corpus.append(data)
                tally.fresh.append(data)
            if tally.tried % LOOK_INPUTS == 0:
                tally.grown_bytes = growth()
                if tally.grown_bytes > MEMORY_BYTES_MAX:
                    raise Finding(target, data, f"memory grew by {tally.grown_bytes:,} bytes, at this input or before")
                told(tally)
    return tally


def try_one(target: Target, data: bytes, tally: Tally | None = None) -> bool:
    """Whether the input is taken. Raises `Finding`."""
    tally = tally or Tally()
    began = time.thread_time()
    try:
        taken = target.check(data)
    except Exception as error:
        raise Finding(target, data, f"{type(error).__name__}: {error}") from error
    # The processor's time of this thread: a busy machine makes nothing slower by it.
    took = time.thread_time() - began
    if took > INPUT_SECONDS_MAX:
        raise Finding(target, data, f"it took {took:.1f} s")
    tally.tried += 1
    tally.taken += taken
    tally.slowest_seconds = max(tally.slowest_seconds, took)
    return taken


@contextmanager
def quiet() -> Iterator[None]:
    """Without logs: a decoder may say a line for each input."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
