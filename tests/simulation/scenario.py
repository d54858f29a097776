"""A scenario is data: what the actors do, what goes wrong meanwhile, and how the broker is set up.

A seed draws one, a run takes one, and shrinking leaves things out of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.simulation.faults import Fault


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that one actor does. An actor does its steps one after another; actors act side by side."""

    actor: str
    verb: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """Plain values only, so that a scenario can be written down and read back."""
    after: float = 0.0
    """Virtual seconds for which the actor rests before it."""

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        rest = f"after {self.after:g} s " if self.after else ""
        return f"{self.actor}: {rest}{self.verb}({given})"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run depends on, beside the code."""

    name: str
    seed: int
    steps: tuple[Step, ...]
    faults: tuple[Fault, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Step | Fault, ...]:
        """What shrinking may leave out."""
        return (*self.faults, *self.steps)

    def keeping(self, parts: Iterable[Step | Fault]) -> Scenario:
        """The same with only these of its parts, in their order."""
        kept = list(parts)
        return replace(
            self,
            steps=tuple(part for part in kept if isinstance(part, Step)),
            faults=tuple(part for part in kept if isinstance(part, Fault)),
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        read = json.loads(text)
        return cls(
            name=read["name"],
            seed=read["seed"],
            steps=tuple(Step(**step) for step in read["steps"]),
            faults=tuple(Fault(**fault) for fault in read["faults"]),
            settings=read["settings"],
        )

    def __str__(self) -> str:
        lines = [f"scenario {self.name}, seed {self.seed}"]
        lines += [f"  setting {name} = {value!r}" for name, value in self.settings.items()]
        lines += [f"  fault {fault}" for fault in self.faults]
        lines += [f"  {step}" for step in self.steps]
        return "\n".join(lines)
