"""Publishes of one connection that were refused, for those behind them: nothing is stored behind a gap."""

from __future__ import annotations

from sealane.errors import RateLimited
from sealane.wire.connection import CALLS_OPEN_MAX
from sealane.wire.faults import Fault, error_of, fault_of
from sealane.wire.messages import Publish, PublishTo

REFUSED_REMEMBERED = 256
"""Refused publishes of one connection that later ones may name as before them: far more than a producer sends ahead."""
LIMITED_REMEMBERED = CALLS_OPEN_MAX
"""Publishes of one connection that a rate limit refused. Whoever names one of them has not read its refusal yet, so it
and all that were refused since are among its open calls."""


class Refusals:
    """Of a publish that was refused before the next one is looked at, whatever either of them waits for later."""

    __slots__ = ("_limited", "_refused")

    def __init__(self) -> None:
        self._refused: dict[int, Fault] = {}
        """The last publishes that were refused, by call: those that name one of them as before them are refused too."""
        self._limited: dict[int, Fault] = {}
        """The last publishes that a rate limit refused, by call: those behind one of them must not overtake it."""

    def check(self, request: Publish | PublishTo) -> None:
        """Raise what refused the one that this one must not be stored without, or must not overtake."""
        if isinstance(request, Publish) and request.after in self._refused:
            raise error_of(*self._refused[request.after])
        if request.behind in self._limited:
            raise error_of(*self._limited[request.behind])

    def note(self, request: Publish | PublishTo, error: BaseException) -> None:
        """It is refused for this."""
        if not request.call:
            return
        _keep(self._refused, request.call, fault_of(error), REFUSED_REMEMBERED)
        if isinstance(error, RateLimited):
            fault = self._limited.get(request.behind) or fault_of(error)
            _keep(self._limited, request.call, fault, LIMITED_REMEMBERED)


def _keep(faults: dict[int, Fault], call: int, fault: Fault, most: int) -> None:
    faults[call] = fault
    if len(faults) > most:
        del faults[next(iter(faults))]
