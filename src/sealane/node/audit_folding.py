"""Folding: what happens again and again within a while becomes one entry of the audit log, with a count.

The first is written at once. Those after it are counted, and the count is written when the while is over: a flood of
refusals costs little, and nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sealane.security.audit.entries import Outcome, fitting, fitting_details
from sealane.security.principals import Principal

REPEATED_SECONDS = 1.0
"""Identical refusals, and identical logins, within so long are one entry more, with a count."""
READ_SECONDS = 600.0
"""The same for what an administrator reads: whoever looks every second looks for a reason, and is seen all the same."""
FOLDS_MAX = 200
"""What is told apart at a time. Beyond it, things are counted by what happened and from where, and beyond twice as many
by what happened alone: strangers, who can vary what they send as they like, do not decide how much is written."""


class Origin(NamedTuple):
    """Where someone came in."""

    address: str = ""
    door: str = ""


NOWHERE = Origin()
"""Of whoever is in the process itself."""


class Happening(NamedTuple):
    """Something to be written down, but for its time and place in the chain."""

    event: str
    outcome: Outcome
    principal: str = ""
    client_id: str = ""
    credential: str = ""
    address: str = ""
    door: str = ""
    resource: str = ""
    details: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def of(
        cls,
        event: str,
        principal: Principal | None,
        outcome: Outcome = "ok",
        resource: str = "",
        origin: Origin = NOWHERE,
        details: Mapping[str, str | int] = MappingProxyType({}),
    ) -> Happening:
        """With texts that fit into an entry."""
        return cls(
            event,
            outcome,
            "" if principal is None else fitting(principal.name),
            "" if principal is None else fitting(principal.client_id),
            "" if principal is None else fitting(principal.credential),
            fitting(origin.address),
            fitting(origin.door),
            fitting(resource),
            tuple(fitting_details(details).items()),
        )

    def counted(self, count: int) -> Happening:
        return self._replace(details=(*self.details, ("count", count)))


class _Fold:
    __slots__ = ("count", "until")

    def __init__(self, until: float, count: int) -> None:
        self.until = until
        self.count = count


class Folds:
    """What has happened lately, and how often since it was written. Times are seconds of any clock that runs on."""

    def __init__(self) -> None:
        self._folds: dict[Happening, _Fold] = {}

    def __len__(self) -> int:
        return len(self._folds)

    def is_new(self, happening: Happening, now: float, seconds: float) -> bool:
        """Whether it is to be written now; otherwise it is counted, and comes from `over` later."""
        fold = self._folds.get(happening)
        if fold is not None:
            fold.count += 1
            return False
        if len(self._folds) < FOLDS_MAX:
            self._folds[happening] = _Fold(now + seconds, 0)
            return True
        rough = Happening(happening.event, happening.outcome, address=happening.address, details=(("various", 1),))
        if rough not in self._folds and len(self._folds) >= 2 * FOLDS_MAX:
            rough = rough._replace(address="")
        self._folds.setdefault(rough, _Fold(now + seconds, 0)).count += 1
        return False

    def over(self, now: float | None = None) -> list[Happening]:
        """What was counted and whose while is over, with its count; all of it without a time."""
        ended = [happening for happening, fold in self._folds.items() if now is None or fold.until <= now]
        counted = [(happening, self._folds.pop(happening).count) for happening in ended]
        return [happening.counted(count) for happening, count in counted if count]
