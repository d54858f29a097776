"""How much of the machine's memory a process holds, by the kernel's own account."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

BYTES_PER_MB = 1_000_000
READINGS = 5
READING_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Resident:
    resident_mb: float
    """All of its pages that are in memory (`Rss`), also those that it shares with others, such as libraries."""
    private_mb: float
    """What would be free if it ended: pages that no other process has."""


def of(pid: int) -> Resident:
    """As it is now, from `/proc/PID/smaps_rollup`; pages given back lazily count until the kernel takes them."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, amount, _ = line.split()
        fields[name.rstrip(":")] = int(amount) * 1_024 / BYTES_PER_MB
    return Resident(fields["Rss"], fields["Private_Clean"] + fields["Private_Dirty"])


def settled(pid: int) -> Resident:
    """The median of a few readings over a second."""
    readings = []
    for _ in range(READINGS):
        time.sleep(READING_SECONDS)
        readings.append(of(pid))
    return Resident(
        statistics.median(each.resident_mb for each in readings),
        statistics.median(each.private_mb for each in readings),
    )
