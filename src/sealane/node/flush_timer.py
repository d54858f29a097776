"""When what waits in memory must be on its way at the latest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

NEVER = float("inf")
EARLY_SECONDS_MAX = 0.001
"""An event loop's timers tick in milliseconds: one that fires so much before its moment has come."""


class FlushTimer:
    """Calls `flush` at the earliest moment that was asked for since the last `clear`.

    A busy partition asks and clears with each commit. Its timer is left where it is by both: it looks, when it fires,
    whether anything is due by then, and goes on to what is. That is a timer in some milliseconds, not two a message.
    """

    __slots__ = ("_call_at", "_due", "_fires", "_flush", "_now", "_timer")

    def __init__(self, flush: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._call_at = loop.call_at
        self._flush = flush
        self._due = NEVER
        self._fires = NEVER
        """When the timer does, which may be earlier than anything is due, and is never later."""
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> None:
        """Something waits that must not wait longer than this."""
        at = self._now() + seconds
        if at < self._due:
            self._due = at
            if at < self._fires:
                self._fire_at(at)

    def clear(self) -> None:
        """Nothing waits any more."""
        self._due = NEVER

    def close(self) -> None:
        self._due = NEVER
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fires = NEVER

    def _fire_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires = at
        self._timer = self._call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._fires = NEVER
        if self._due == NEVER:
            return
        if self._due - self._now() > EARLY_SECONDS_MAX:
            self._fire_at(self._due)
            return
        self._due = NEVER
        self._flush()
