"""A work: something that can be measured, in parts that each give one figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.peers.peer import Peer

Amounts = Mapping[str, Any]
MESSAGE_RATE = "msg/s"


@dataclass(frozen=True, slots=True)
class Part:
    """One value that each round of a work has."""

    name: str
    title: str
    """What it is, with the amounts of the work in it: `{count:,} messages`."""
    unit: str
    reach: float | None = None
    """At least this, or at most where less is better."""
    less_is_better: bool = False
    ratio_reach: float | None = None
    """At least so many times the best durable peer."""
    title_beside: str | None = None
    """What it is on a peer, where the title has words of Sealane's own."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one round told: a value for each part, by its name."""

    values: Mapping[str, float]
    distributions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """All single measurements behind a part's value; those of all rounds are put together and kept thinned."""
    courses: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """A part's course over time, a value each second; that of the last round is kept."""
    rounds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Values of a part where the work has rounds of its own."""
    notes: Mapping[str, str] = field(default_factory=dict)
    foreign: Sequence[float] = ()
    """The share of processor time that others had, round by round, where the work has watched that by itself."""

    def of(self, part: str) -> tuple[float, ...]:
        """The values of a part: one, or as many as there were rounds inside; none where it was not measured."""
        return (
            tuple(self.rounds[part]) if part in self.rounds else tuple(v for k, v in self.values.items() if k == part)
        )


@dataclass(frozen=True, slots=True)
class Work:
    """Something to measure on Sealane, and maybe on its peers."""

    name: str
    group: str
    """The file in `bench/results` that it is told in."""
    parts: tuple[Part, ...]
    measure: Callable[[Path, Amounts], Reading]
    """One round on Sealane, in an empty directory."""
    amounts: Amounts
    quick: Amounts = field(default_factory=dict)
    """What is less when it must be quick."""
    beside: Callable[[Peer, str, Amounts], Reading] | None = None
    """The same on a peer that runs at an address; None where peers have nothing alike."""
    rounds_max: int = 100
    seconds: float = 5.0
    """About how long a round takes, to foretell the end of a run."""
    quick_seconds: float = 2.0
    in_quick: bool = True
    """Whether a quick run of everything has it: not what takes long however little there is of it."""
    missing: Callable[[], str | None] = lambda: None
    """None, or what it needs and is not here, and how to get it."""

    def amounts_for(self, quick: bool) -> dict[str, Any]:
        return {**self.amounts, **(self.quick if quick else {})}

    def titled(self, part: Part, amounts: Amounts, *, beside: bool = False) -> str:
        """What a part is called, on Sealane or on a peer beside it."""
        title = part.title_beside if beside and part.title_beside is not None else part.title
        return title.format(**amounts)

    @property
    def title(self) -> str:
        """What its first part says, with its full amounts."""
        return self.titled(self.parts[0], self.amounts)


def inner_directory(path: Path, name: str) -> Path:
    """An empty directory inside one, where a work needs several."""
    (path / name).mkdir()
    return path / name
