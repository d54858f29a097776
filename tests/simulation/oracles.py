"""All oracles: pure checks over a recorded history. Each yields a sentence for each thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.history import Entry
from tests.simulation.oracle_delivery import (
    attempts_within_limit,
    dead_letters_once,
    everything_settles,
    exclusive_has_one_reader,
    filters_hold,
    no_grant_after_confirmed_ack,
    one_holder,
    order_per_partition,
    redriven_once,
    times_hold,
)
from tests.simulation.oracle_keys import order_per_key
from tests.simulation.oracle_log import (
    damage_is_declared_only_after_damage,
    memory_bounded,
    no_acknowledged_loss,
    nothing_invented,
    producer_order,
    stored_once,
    transactions_all_or_nothing,
)

Oracle = Callable[[Sequence[Entry]], Iterator[str]]

VIOLATIONS_MAX = 5
"""Of each oracle: a broken run breaks the same promise many times, and the first few tell the story."""

ORACLES: tuple[Oracle, ...] = (
    no_acknowledged_loss,
    damage_is_declared_only_after_damage,
    nothing_invented,
    stored_once,
    producer_order,
    transactions_all_or_nothing,
    no_grant_after_confirmed_ack,
    one_holder,
    order_per_partition,
    order_per_key,
    exclusive_has_one_reader,
    attempts_within_limit,
    dead_letters_once,
    redriven_once,
    everything_settles,
    filters_hold,
    times_hold,
    memory_bounded,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, by the name of the oracle that says so."""

    oracle: str
    problem: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.problem}"


def judge(history: Sequence[Entry], oracles: Iterable[Oracle] = ORACLES) -> list[Violation]:
    """Everything that is wrong with this history, at most `VIOLATIONS_MAX` of each kind."""
    violations: list[Violation] = []
    for oracle in oracles:
        for count, problem in enumerate(oracle(history)):
            if count == VIOLATIONS_MAX:
                break
            violations.append(Violation(oracle.__name__, problem))
    return violations
