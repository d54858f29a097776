"""The ways in which a simulated life can end other than by finishing."""

from __future__ import annotations

from collections.abc import Sequence


class Crashed(BaseException):
    """The simulated process is dead.

    It is no `Exception`, so that code which survives ordinary errors does not survive this one; and should some code
    swallow it all the same, the loop runs nothing more and the disk refuses everything from a dead life.
    """


class SimulationStopped(Exception):
    """The life went wrong in a way that only the simulator can see; the text tells what every task waits for."""

    def __init__(self, problem: str, waiting: Sequence[str]) -> None:
        self.problem = problem
        self.waiting = tuple(waiting)
        lines = [problem, *(f"  waiting: {line}" for line in self.waiting)]
        super().__init__("\n".join(lines))


class Deadlock(SimulationStopped):
    """Nothing is ready and no timer is set: whatever is still waiting waits for ever."""


class Overdue(SimulationStopped):
    """The life reached its last virtual moment and has not finished."""


class StepBudgetExceeded(SimulationStopped):
    """The life ran more callbacks than it may: something spins."""
