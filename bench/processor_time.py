"""How much processor time a process has taken: what work costs, whatever else the machine does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_SCHEDULED = 2
"""Of a process's clock: what its threads were scheduled for, those that have ended too (`man clock_getcpuclockid`)."""


def seconds(pid: int) -> float:
    """Since it was started, of user and kernel together."""
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


class Taken:
    """What was taken between two moments, once both are there."""

    seconds = 0.0

    def us_each(self, count: int) -> float:
        """Shared out among so many messages."""
        return self.seconds * 1e6 / count


@contextmanager
def taken(pid: int) -> Iterator[Taken]:
    """Of what happens within."""
    measured = Taken()
    before = seconds(pid)
    yield measured
    measured.seconds = seconds(pid) - before
