"""How much memory a piece of work takes at its peak, beyond what the process had before."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def peak_growth() -> Iterator[Callable[[], int]]:
    """Gives what tells by how many bytes the process has grown so far, at its peak."""
    if _can_reset():
        before = _of_status("VmRSS")
        yield lambda: max(0, _of_status("VmHWM") - before)
    else:
        unit = 1 if sys.platform == "darwin" else 1_024
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yield lambda: (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit


def _can_reset() -> bool:
    """Linux begins its peak anew when it is asked to: what other tests have taken before does not count."""
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def _of_status(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1_024
