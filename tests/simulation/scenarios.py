"""Every kind of scenario, by name: how a seed draws one, and what it drives."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from tests.simulation.broker_subject import BrokerSubject
from tests.simulation.engine_subject import EngineSubject, draw_engine
from tests.simulation.oracles import Violation
from tests.simulation.scenario import Scenario
from tests.simulation.toy import ToyQueue, draw_toy
from tests.simulation.workload import draw_broker
from tests.simulation.world import Report, SubjectFactory, World

CPU_SECONDS_MAX = 60
"""CPU time for one run. The virtual clock cannot see code that loops without ever waiting; this can."""


@dataclass(frozen=True)
class ScenarioKind:
    draw: Callable[[int], Scenario]
    """The same scenario for the same seed, always."""
    subject: SubjectFactory
    usual: bool = True
    """Among those that a seed may choose when no scenario is named."""


SCENARIOS: dict[str, ScenarioKind] = {
    "toy": ScenarioKind(draw_toy, ToyQueue, usual=False),
    "engine": ScenarioKind(draw_engine, EngineSubject),
    "broker": ScenarioKind(draw_broker, BrokerSubject),
}


def draw(seed: int, name: str | None = None, settings: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario of this seed. Without a name the seed chooses, each of the usual ones in turn."""
    if name is None:
        usual = [known for known, kind in SCENARIOS.items() if kind.usual]
        name = usual[seed % len(usual)]
    scenario = SCENARIOS[name].draw(seed)
    return replace(scenario, settings={**scenario.settings, **(settings or {})})


def play(scenario: Scenario, *, trace: Callable[[str], None] | None = None) -> Report:
    """Run a scenario; one that takes too much CPU time is a failing one."""
    world = World(scenario, SCENARIOS[scenario.name].subject, trace=trace)
    try:
        # What the broker logs about faults is right to say and much to read: it is shown with the trace alone.
        logging.disable(logging.NOTSET if trace else logging.CRITICAL)
        with _limited(CPU_SECONDS_MAX):
            return world.run()
    except Hung as hung:
        world.report.violations.append(Violation("keeps_running", str(hung)))
        return world.report
    finally:
        logging.disable(logging.NOTSET)


class Hung(KeyboardInterrupt):
    """The run took too long. asyncio lets no other kind of error out of a task at once."""


@contextmanager
def _limited(seconds: float):
    def interrupt(number: int, frame: FrameType | None) -> None:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "unknown"
        raise Hung(f"still running after {seconds:g} s of CPU time, at {place}")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
