"""What goes wrong around the broker, as data: when, what, how much."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

FaultKind = Literal[
    "kill",
    "power_loss",
    "restart",
    "crash_before",
    "crash_after",
    "torn_write",
    "sync_error",
    "write_error",
    "bit_flip",
    "full_disk",
    "slow_disk",
    "clock_jump",
]

ON_OPERATION: frozenset[FaultKind] = frozenset(
    {"crash_before", "crash_after", "torn_write", "sync_error", "write_error"}
)
"""These happen to a disk operation, by number; the others at a virtual moment."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    kill                       the process dies, the machine does not
    power_loss                 the machine dies: what was not synced is gone, or partly
    restart                    an orderly stop, and a start
    crash_before, crash_after  the process dies at a disk operation; with `power` the machine does
    torn_write                 the machine dies in the middle of a write
    sync_error, write_error    the disk refuses one sync or write (or one metadata commit)
    bit_flip                   one bit of synced data rots
    full_disk                  for `seconds`, only `amount` bytes are free
    slow_disk                  for `seconds`, everything takes `amount` times as long
    clock_jump                 the wall clock is set `seconds` forwards, or backwards
    """

    kind: FaultKind
    at: float = 0.0
    """Virtual seconds since the beginning; of a fault on an operation the number of that operation."""
    seconds: float = 0.0
    amount: float = 0.0
    power: bool = True


Mix = Mapping[FaultKind, float]
"""How likely each kind is, relative to the others."""

EVERYTHING: dict[FaultKind, float] = dict.fromkeys(get_args(FaultKind), 1.0)
CRASHES: dict[FaultKind, float] = {
    "kill": 1,
    "power_loss": 2,
    "crash_before": 3,
    "crash_after": 3,
    "torn_write": 2,
    "restart": 1,
}


def draw_faults(rng: random.Random, mix: Mix, *, count_max: int, seconds: float, operations: int) -> tuple[Fault, ...]:
    """At most `count_max` faults within the first `seconds` and disk `operations` of a run, in no order."""
    kinds, weights = list(mix), list(mix.values())
    chosen = rng.choices(kinds, weights, k=rng.randint(0, count_max))
    return tuple(draw_fault(rng, kind, seconds=seconds, operations=operations) for kind in chosen)


def draw_fault(rng: random.Random, kind: FaultKind, *, seconds: float, operations: int) -> Fault:
    if kind in ON_OPERATION:
        return Fault(kind, rng.randrange(1, operations + 1), power=kind == "torn_write" or rng.random() < 0.7)
    at = round(rng.uniform(0, seconds), 3)
    match kind:
        case "full_disk":
            return Fault(kind, at, seconds=round(rng.uniform(0, seconds), 3), amount=rng.choice((0, 1_000, 100_000)))
        case "slow_disk":
            return Fault(kind, at, seconds=round(rng.uniform(0, seconds), 3), amount=rng.choice((10, 100, 1_000)))
        case "clock_jump":
            return Fault(kind, at, seconds=rng.choice((-86_400, -3_600, -40, -1, -0.001, 0.5, 5, 40, 3_600, 86_400)))
    return Fault(kind, at)
