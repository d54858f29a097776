"""Make a failing scenario small: leave out steps and faults as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.simulation.scenario import Scenario
from tests.simulation.world import Report

T = TypeVar("T")

RUNS_MAX = 400
"""Runs spent on one failure: a minute or two, after which a smaller scenario is hardly worth waiting for."""


def shrink(scenario: Scenario, play: Callable[[Scenario], Report], *, runs_max: int = RUNS_MAX) -> Scenario:
    """A scenario with as few parts as could be found that breaks one of the promises that this one breaks.

    The scenario must fail. The result fails too: nothing is left out on a guess.
    """
    wanted = {violation.oracle for violation in play(scenario).violations}

    def fails(parts: Sequence[object]) -> bool:
        report = play(scenario.keeping(parts))  # type: ignore[arg-type]
        return any(violation.oracle in wanted for violation in report.violations)

    return scenario.keeping(minimise(scenario.parts, fails, tests_max=runs_max))


def minimise(parts: Sequence[T], fails: Callable[[Sequence[T]], bool], *, tests_max: int) -> tuple[T, ...]:
    """Delta debugging: drop ever smaller runs of parts while the rest still fails.

    If `tests_max` allows, no single part of the result can be left out any more.
    """
    kept = list(parts)
    tests = 0
    size = max(1, len(kept) // 2)
    while kept:
        dropped = False
        start = 0
        while start < len(kept):
            if tests == tests_max:
                return tuple(kept)
            tests += 1
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept, dropped = rest, True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not dropped:
            break
    return tuple(kept)
