"""Planted bugs: each breaks the code in one way that the simulator must notice, or it is not worth its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.scenarios import draw, play

SEEDS_MAX = 200
"""Within how many seeds a planted bug must be found."""


@dataclass(frozen=True)
class Planted:
    """A bug that can be switched on: by a setting of the scenario, or by patching the code while `plant` is entered."""

    name: str
    scenario: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    plant: Callable[[], AbstractContextManager[Any]] = nullcontext


PLANTED: tuple[Planted, ...] = tuple(
    Planted(f"toy {bug}", "toy", {"bug": bug})
    for bug in ("skips the sync", "acks before commit", "forgets acks", "off by one", "serves corrupted records")
)


@dataclass(frozen=True)
class Found:
    seed: int
    oracle: str
    problem: str


def hunt(planted: Planted, *, seeds_max: int = SEEDS_MAX) -> Found | None:
    """The first seed that notices the bug, and how; None if none does."""
    with planted.plant():
        for seed in range(seeds_max):
            report = play(draw(seed, planted.scenario, planted.settings))
            if report.failed:
                return Found(seed, report.violations[0].oracle, report.violations[0].problem)
    return None
