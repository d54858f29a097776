"""Supervision: what runs by itself either goes on after a crash, or stops the node; it never just ends.

A *crash* is an exception that nobody expected. It is logged with its traceback and counted by the task's name, and then
the task is started again, after a pause that grows while it keeps crashing. Where memory may no longer be what is
stored, and cannot be read again, going on would be wrong: then the node stops, and the process that runs it ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sealane.log import get_log

log = get_log("sealane.node.supervision")

RESTART_SECONDS_MIN = 0.1
"""The pause after a first crash: short enough that nobody waits for long, long enough not to spin."""
RESTART_SECONDS_MAX = 30.0
"""The longest pause. What has run for this long without a crash begins again with the shortest."""


class Backoff:
    """Pauses that double while crashes follow each other, and begin anew after a quiet time."""

    __slots__ = ("_last", "_pause")

    def __init__(self) -> None:
        self._pause = 0.0
        self._last = float("-inf")

    def next_seconds(self, now: float) -> float:
        """How long to wait after a crash that happened `now`, on the loop's clock."""
        if now - self._last > self._pause + RESTART_SECONDS_MAX:
            self._pause = 0.0
        self._last = now
        self._pause = min(max(2 * self._pause, RESTART_SECONDS_MIN), RESTART_SECONDS_MAX)
        return self._pause


class Supervisor:
    """Starts tasks, hears of every crash, and knows whether the node has to stop. Belongs to one event loop."""

    def __init__(self) -> None:
        self.crashes: Counter[str] = Counter()
        """How often each task has crashed, by its name."""
        self.failure: BaseException | None = None
        """Why the node has to stop, or None."""
        self.failed_task = ""
        self.on_crash: Callable[[str, BaseException], None] | None = None
        """Told of each crash as well; for tests that allow none."""
        self._failed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def crashed(self, task: str, error: BaseException, **fields: object) -> None:
        """A task met something that nobody expected, and goes on."""
        self.crashes[task] += 1
        log.error("a task crashed", task=task, crashes=self.crashes[task], **fields, exc_info=error)
        if self.on_crash is not None:
            self.on_crash(task, error)

    def stop(self, task: str, error: BaseException, **fields: object) -> None:
        """A task met something after which going on would be wrong: nothing more is changed, and the node stops."""
        self.crashed(task, error, **fields)
        if self.failure is None:
            self.failure = error
            self.failed_task = task
            log.critical("the node stops: its state is not sure any more", task=task, **fields)
            self._failed.set()

    async def failed(self) -> BaseException:
        """Wait until the node has to stop, and say why. Waits for ever on a healthy node."""
        await self._failed.wait()
        assert self.failure is not None
        return self.failure

    def keep(self, task: str, work: Callable[[], Awaitable[None]], **fields: object) -> asyncio.Task[None]:
        """Run `work` until it returns; after a crash it is called again. The caller cancels what is to end."""
        return asyncio.get_running_loop().create_task(self._keep(task, work, fields), name=task)

    async def _keep(self, task: str, work: Callable[[], Awaitable[None]], fields: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while True:
            try:
                await work()
                return
            except Exception as error:
                self.crashed(task, error, **fields)
            await asyncio.sleep(backoff.next_seconds(loop.time()))

    def spawn(self, task: str, work: Coroutine[Any, Any, None], **fields: object) -> None:
        """Run something once that nobody waits for. A crash is heard of; the next occasion does the work again."""

        async def once() -> None:
            try:
                await work
            except Exception as error:
                self.crashed(task, error, **fields)

        running = asyncio.get_running_loop().create_task(once(), name=task)
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for what was spawned."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
