"""A circuit breaker: after failures in a row nothing is sent for a while; then one request tries how it is by now.

Closed: requests are sent. Open: none is, until its pause is over. Half-open: one is, and decides. `now` is a clock that
only goes forward, in seconds.
"""

from __future__ import annotations

from typing import Literal

BreakerState = Literal["closed", "open", "half-open"]


class Breaker:
    """Of one webhook."""

    __slots__ = ("_failures_max", "_longest", "_pause", "_shortest", "_until", "failures")

    def __init__(self, failures_max: int, open_seconds: float, open_seconds_max: float) -> None:
        """It opens at `failures_max` in a row; each further failure doubles the pause."""
        self._failures_max = failures_max
        self._shortest = open_seconds
        self._longest = open_seconds_max
        self._pause = 0.0
        self._until = float("-inf")
        self.failures = 0
        """In a row."""

    def state(self, now: float) -> BreakerState:
        if self.failures < self._failures_max:
            return "closed"
        return "open" if now < self._until else "half-open"

    def wait_seconds(self, now: float) -> float:
        """How long nothing is to be sent; 0: go on."""
        return max(0.0, self._until - now)

    def succeeded(self) -> None:
        self.failures = 0
        self._pause = 0.0
        self._until = float("-inf")

    def failed(self, now: float, hold_seconds: float | None = None) -> None:
        """`hold_seconds`: the receiver wants to be left alone for so long, whether the breaker opens or not."""
        self.failures += 1
        if self.failures >= self._failures_max:
            self._pause = min(max(2 * self._pause, self._shortest), self._longest)
            self._until = max(self._until, now + self._pause)
        if hold_seconds is not None:
            self._until = max(self._until, now + hold_seconds)
