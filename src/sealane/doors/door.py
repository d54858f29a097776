"""What every door is to the process that opens it."""

from __future__ import annotations

from typing import Protocol


class Door(Protocol):
    @property
    def name(self) -> str:
        """As in the settings: `native`, `http` …"""

    @property
    def address(self) -> str:
        """`host:port` where it answers, once started."""

    @property
    def connections(self) -> int:
        """How many there are now."""

    async def start(self) -> None:
        """Return when clients can come in. Raises `PortTaken` if someone else holds the port."""

    async def drain(self, seconds: float) -> None:
        """Let nobody in any more, tell those inside, and return when what was begun is done or the time is over."""

    async def close(self) -> None:
        """Cut off whoever is left. Idempotent."""
