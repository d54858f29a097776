"""Where blocking work runs. A seam: the simulator has no threads, and decides by itself when work is done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")

SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a CPU-bound thread keeps the interpreter from a thread that came back from the disk.

With Python's 5 ms a committing thread beside a busy one falls to about 100 commits a second.
"""


class Runner(Protocol):
    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Have `work` run off the event loop, from this moment on; the future has what it returns or raises."""
        ...

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` off the event loop and give back what it returns or raises."""
        ...

    def close(self) -> None:
        """Wait for what runs, and let go of the threads."""
        ...


class ThreadRunner:
    """Runs work on threads of its own. While any runner is open, the interpreter switches threads more eagerly."""

    _open = 0
    _interval_before = 0.005

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(threads, thread_name_prefix=f"sealane-{name}")
        self._closing = False
        if ThreadRunner._open == 0:
            ThreadRunner._interval_before = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_INTERVAL_SECONDS, ThreadRunner._interval_before))
        ThreadRunner._open += 1

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        try:
            return loop.run_in_executor(self._pool, work)
        except RuntimeError:
            if self._closing:
                raise
        # The interpreter ends, and has closed its pools before this one was. What is done last is done here.
        done: asyncio.Future[T] = loop.create_future()
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)
        return done

    async def run(self, work: Callable[[], T]) -> T:
        return await self.begin(work)

    def close(self) -> None:
        self._closing = True
        if self._pool is None:
            return
        self._pool.shutdown(wait=True)
        self._pool = None
        ThreadRunner._open -= 1
        if ThreadRunner._open == 0:
            sys.setswitchinterval(ThreadRunner._interval_before)
