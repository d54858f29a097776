"""The simulated worker thread: work runs at one virtual moment, and takes as long as the disk says."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from tests.simulation.disk import SimDisk
from tests.simulation.loop import VirtualLoop

T = TypeVar("T")


class SimRunner:
    """Implements `sealane.engine.local.runner.Runner` without threads: one piece of work after another.

    The work happens `start_seconds()` after its turn comes, and its result is seen once the disk's time for it has
    passed: between the two it is done and no one knows, which is where a crash hurts most. Disk time outside of `run`
    blocks the loop.
    """

    def __init__(self, loop: VirtualLoop, disk: SimDisk, *, start_seconds: Callable[[], float] = lambda: 0.0) -> None:
        self._loop = loop
        self._start_seconds = start_seconds
        self._queue: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._busy = False
        self._working = False
        self._spent_seconds = 0.0
        disk.on_delay = self._spend

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        seen: asyncio.Future[T] = self._loop.create_future()
        self._queue.append((work, seen))
        if not self._busy:
            self._take_next()
        return seen

    async def run(self, work: Callable[[], T]) -> T:
        return await self.begin(work)

    def _take_next(self) -> None:
        self._busy = bool(self._queue)
        if self._busy:
            self._loop.call_later(self._start_seconds(), self._perform, *self._queue.popleft())

    def _perform(self, work: Callable[[], Any], seen: asyncio.Future[Any]) -> None:
        self._working, self._spent_seconds = True, 0.0
        result: Any = None
        error: Exception | None = None
        try:
            result = work()
        except Exception as raised:
            error = raised
        finally:
            self._working = False
        self._loop.call_later(self._spent_seconds, self._show, seen, result, error)

    def _show(self, seen: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        # Work that no one waits for any more was still done, as on a thread that cannot be cancelled.
        if not seen.cancelled():
            if error is None:
                seen.set_result(result)
            else:
                seen.set_exception(error)
        self._take_next()

    def close(self) -> None:
        """Nothing to let go of."""

    def _spend(self, seconds: float) -> None:
        if self._working:
            self._spent_seconds += seconds
        else:
            self._loop.block(seconds)
