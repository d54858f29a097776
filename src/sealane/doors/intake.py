"""Back-pressure towards clients: from whom the node reads, and from whom not for now.

Whatever a connection has asked for and has not been answered yet is *in flight*. A client with too much in flight, or
one that comes when all of them together have too much, is not read from until there is room again: its own socket
fills up, and it waits. Nobody is cut off for being fast.
"""

from __future__ import annotations

import asyncio
from typing import Literal

Reason = Literal["own bytes", "total bytes", "requests", "unsent"]

REQUEST_BYTES = 1_024
"""What a request counts beside its body: about what the node keeps of it, so that many small ones count too."""


class Budget:
    """What all connections of a door have in flight together."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.in_flight_bytes = 0
        self._held: dict[Intake, None] = {}

    def take(self, intake: Intake, count: int) -> None:
        self.in_flight_bytes += count
        if self.in_flight_bytes > self.bytes_max and intake not in self._held:
            self._held[intake] = None
            intake.hold("total bytes")

    def give(self, count: int) -> None:
        self.in_flight_bytes -= count
        if self._held and self.in_flight_bytes * 2 <= self.bytes_max:
            held, self._held = self._held, {}
            for intake in held:
                intake.let_go("total bytes")

    def forget(self, intake: Intake) -> None:
        self._held.pop(intake, None)


class Intake:
    """One connection's: reads while nothing speaks against it."""

    __slots__ = ("_against", "_budget", "_bytes_max", "_transport", "in_flight_bytes", "was_paused")

    def __init__(self, bytes_max: int, budget: Budget) -> None:
        self._bytes_max = bytes_max
        self._budget = budget
        self._transport: asyncio.ReadTransport | None = None
        self._against: set[Reason] = set()
        self.in_flight_bytes = 0
        self.was_paused = False
        """Since this was last set to false."""

    def open(self, transport: asyncio.ReadTransport) -> None:
        self._transport = transport

    def close(self) -> None:
        """The connection is gone. What is in flight still counts until it is done."""
        self._transport = None
        self._budget.forget(self)

    @property
    def paused(self) -> bool:
        return bool(self._against)

    def begin(self, count: int) -> None:
        """So many bytes are in flight from now on."""
        self.in_flight_bytes += count
        if self.in_flight_bytes > self._bytes_max:
            self.hold("own bytes")
        self._budget.take(self, count)

    def end(self, count: int) -> None:
        self.in_flight_bytes -= count
        if "own bytes" in self._against and self.in_flight_bytes * 2 <= self._bytes_max:
            self.let_go("own bytes")
        self._budget.give(count)

    def hold(self, reason: Reason) -> None:
        """Read no more until this reason is gone."""
        if not self._against and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._against.add(reason)
        self.was_paused = True

    def let_go(self, reason: Reason) -> None:
        if reason not in self._against:
            return
        self._against.discard(reason)
        if not self._against and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
