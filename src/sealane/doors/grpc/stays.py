"""Calls that stay: each is told to end when its caller's credential is over, or the node is about to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sealane.errors import SealaneError
from sealane.node.entrances import Entrances
from sealane.security.principals import Principal


class Stay:
    """One call. It is cancelled when it has to end, unless it knows a better way (`stop`)."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "a call is a task"
        self.stop: Callable[[], object] = task.cancel
        self.why: SealaneError | None = None
        """Why it has to end, once it has to."""

    def end(self, why: SealaneError) -> None:
        if self.why is None:
            self.why = why
            self.stop()


class Stays:
    """Of one door. A stay counts as a connection of its principal."""

    def __init__(self, entrances: Entrances) -> None:
        self._entrances = entrances
        self._stays: set[Stay] = set()
        self._closed: SealaneError | None = None

    def __len__(self) -> int:
        return len(self._stays)

    @contextmanager
    def entered(self, stay: Stay, principal: Principal | None, address: str) -> Iterator[None]:
        """While the call goes on; of a stranger without a principal. Raises `TooManyConnections`."""
        self.check()
        entrance = None if principal is None else self._entrances.came(principal, address, stay.end)
        self._stays.add(stay)
        try:
            yield
        finally:
            self._stays.discard(stay)
            if entrance is not None:
                self._entrances.left(entrance)

    def check(self) -> None:
        """Raise why nothing is begun any more, if that is so."""
        if self._closed is not None:
            raise self._closed

    def end_all(self, why: SealaneError) -> None:
        """Tell all of them, and begin no more."""
        self._closed = why
        for stay in list(self._stays):
            stay.end(why)
