"""The processor time of a process and of all that it started, while they run."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path


def processor_seconds(root: int) -> float:
    """User and system time of a process, its descendants, and those of them that have ended and were waited for."""
    ticks: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(entry)):
            process = int(entry.name)
            children[int(fields[1])].append(process)
            ticks[process] = sum(map(int, fields[11:15]))
    found, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        found += ticks.get(process, 0)
        waiting += children[process]
    return found / os.sysconf("SC_CLK_TCK")


def _fields(entry: Path) -> list[str]:
    """What the kernel tells of a process, from its state on; nothing if it has ended meanwhile."""
    try:
        stat = (entry / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # Its name comes before, in parentheses, and may have any character in it.
    return stat.rpartition(")")[2].split()
