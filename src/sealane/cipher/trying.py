"""How often and how long a command is tried, for both ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sealane.cipher.connection import Connection
from sealane.cipher.errors import ConnectionLost

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0
"""Between two attempts to connect, each pause twice as long as the one before."""


@dataclass(frozen=True, slots=True)
class Patience:
    """As CipherMQ's own clients have it."""

    tries: int = 3
    try_seconds: float = 5.0
    """For each try, from its beginning or from the last sign that the broker is at it."""
    refused_seconds: float = 1.0
    """Before the next try, if the broker has answered with an error: one that is about to stop, or where a quota is
    used up, says so in the same way as one that will never do it."""

    @property
    def seconds(self) -> float:
        """For all tries."""
        return self.tries * self.try_seconds


PATIENCE = Patience()

Dial = Callable[[], Awaitable[Connection]]
"""Opens a connection; raises `ConnectionLost` if nobody is there, which may pass."""


class Pauses:
    """How long to wait before the next attempt."""

    def __init__(self) -> None:
        self._seconds = PAUSE_SECONDS_MIN

    def next(self) -> float:
        found = self._seconds
        self._seconds = min(2 * found, PAUSE_SECONDS_MAX)
        return found


async def dial_until(dial: Dial, stop: float) -> Connection:
    """A connection, tried for until the loop's clock says `stop`; raises the last `ConnectionLost` then."""
    loop = asyncio.get_running_loop()
    pauses = Pauses()
    while True:
        try:
            return await dial()
        except ConnectionLost:
            pause = pauses.next()
            if loop.time() + pause >= stop:
                raise
            await asyncio.sleep(pause)
