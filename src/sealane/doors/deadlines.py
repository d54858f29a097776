"""What must happen in time, or the connection is cut off."""

from __future__ import annotations

import asyncio


class Deadline:
    """Cuts a connection off unless it is cleared in time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self.clear()
        self._timer = self._loop.call_later(seconds, self._transport.abort)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
