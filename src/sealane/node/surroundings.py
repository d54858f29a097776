"""What the outside gives a node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from sealane.message import Stamp


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node may not make up itself: the time in µs since 1970, and randomness."""

    clock: Callable[[], int]
    entropy: Callable[[int], bytes]

    def stamp(self) -> Stamp:
        return Stamp(self.clock(), self.entropy(16))


def wall_clock_us() -> int:
    return time.time_ns() // 1_000


def of_this_machine() -> Surroundings:
    """The machine's own clock and randomness, for whatever is not simulated."""
    return Surroundings(wall_clock_us, os.urandom)
