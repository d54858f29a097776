"""Back-pressure: how much may be under way at a time. Whoever reads more waits until there is room for it."""

from __future__ import annotations

import asyncio


class Room:
    """So many bytes, and of those of another room: one stream's are among those of all.

    What comes is let in whole while the limit is not reached, so that nothing is too large to ever come in.
    """

    def __init__(self, bytes_max: int, within: Room | None = None) -> None:
        self._bytes_max = bytes_max
        self._within = within
        self._free = asyncio.Event()
        self._free.set()
        self.taken_bytes = 0

    async def wait(self) -> None:
        """Return when there is room."""
        await self._free.wait()
        if self._within is not None:
            await self._within.wait()

    def take(self, count: int) -> None:
        self.taken_bytes += count
        if self.taken_bytes >= self._bytes_max:
            self._free.clear()
        if self._within is not None:
            self._within.take(count)

    def give(self, count: int) -> None:
        """What was taken is free again."""
        self.taken_bytes -= count
        if self.taken_bytes < self._bytes_max:
            self._free.set()
        if self._within is not None:
            self._within.give(count)
