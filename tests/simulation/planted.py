"""Planted bugs: each breaks the code in one way that the simulator must notice, or it is not worth its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.planted_broker import BROKER_BUGS
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


PLANTED: tuple[Planted, ...] = (
    *(
        Planted(f"toy {bug}", "toy", {"bug": bug})
        for bug in ("skips the sync", "acks before commit", "forgets acks", "off by one", "serves corrupted records")
    ),
    Planted("engine skips the sync", "engine", {"lying_sync": True}),
    Planted("broker skips the sync", "broker", {"lying_sync": True}),
    *(Planted(f"broker {bug}", "broker", plant=plant) for bug, plant in BROKER_BUGS.items()),
)


@dataclass(frozen=True)
class Found:
    seed: int
    oracle: str
    problem: str


def hunt(planted: Planted, *, seeds_max: int = SEEDS_MAX) -> Found | None:
    """The first seed that notices the bug, and how; None if none does.

    A seed that fails without the bug as well says nothing about it.
    """
    for seed in range(seeds_max):
        with planted.plant():
            report = play(draw(seed, planted.scenario, planted.settings))
        if report.failed and not play(draw(seed, planted.scenario)).failed:
            return Found(seed, report.violations[0].oracle, report.violations[0].problem)
    return None
