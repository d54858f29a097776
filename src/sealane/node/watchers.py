"""Those who watch a partition: told of what has happened to its leases, in the moment in which it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sealane.delivery.events import Event

Watcher = Callable[[Sequence[Event] | None], None]
"""Told of events that have taken effect; None: anything may be other than it was. It does not raise."""


class Watchers:
    """Of one partition. Nobody is here most of the time, and then telling costs nothing."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: dict[Watcher, None] = {}

    def add(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def discard(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def tell(self, events: Sequence[Event] | None) -> None:
        for told in tuple(self._watchers):
            told(events)
