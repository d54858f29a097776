"""What the outside gives a node."""

from __future__ import annotations

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
