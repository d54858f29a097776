"""Work that is on its way and must not be lost sight of."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Underway:
    """Finishes what was begun, even if the caller gives up, and knows when all of it is done."""

    def __init__(self) -> None:
        self._begun: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Return once everything that had begun before has ended."""
        if self._begun:
            await asyncio.wait(list(self._begun))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        if not task.cancelled():
            task.exception()  # Whoever asked has heard of it, or has gone.
