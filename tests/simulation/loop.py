"""A deterministic asyncio event loop on a virtual clock: it never waits, it moves the clock to the next timer.

There are no threads and no sockets. The same coroutines with the same seed run in the same order, each time.
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import random
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import CoroutineType, FrameType
from typing import Any, Literal, TypeVar

from tests.simulation.ends import Crashed, Deadlock, Overdue, StepBudgetExceeded

T = TypeVar("T")

STEPS_MAX = 2_000_000
"""Callbacks in one life. A seed takes some ten thousand; a task that spins without waiting reaches this in seconds."""

CLOSE_ATTEMPTS_MAX = 100
"""How often an abandoned coroutine may go on waiting in its `finally` before we leave it to the collector."""

WALL_START_US = 1_767_225_600_000_000
"""The wall clock of virtual moment 0: 1 January 2026, so that printed times look like times."""

Shuffle = Literal["none", "timers", "all"]
"""What the seed may reorder: nothing; timers that are due together (asyncio promises no order there); or everything
that is ready together (asyncio does promise first in, first out, so only for code that must not rely on that)."""


@dataclass
class VirtualClock:
    """Monotonic time in seconds, and a wall clock beside it that may jump. Outlives the loops of a run."""

    now: float = 0.0
    wall_offset_us: int = WALL_START_US

    def wall_us(self) -> int:
        return round(self.now * 1_000_000) + self.wall_offset_us

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forwards or (negative) backwards; monotonic time goes on as if nothing had happened."""
        self.wall_offset_us += round(seconds * 1_000_000)


@dataclass(frozen=True)
class Unhandled:
    """An error that no one awaited, such as a background task that died."""

    message: str
    exception: BaseException | None = field(compare=False)

    def __str__(self) -> str:
        return f"{self.message}: {self.exception!r}"


class VirtualLoop(asyncio.BaseEventLoop):
    """One life of the simulated process.

    `step_seconds` is how long each callback takes, so that a task that polls the clock sees it move.
    `executor_seconds` says how long the next `run_in_executor` call takes; its work runs inline after that long.
    `unhandled` collects errors that no one awaited. After `crash()` nothing of this life runs any more.
    """

    # What we use of the base class and its types do not show: the same in every supported Python.
    _ready: collections.deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _timer_cancelled_count: int
    _stopping: bool

    def __init__(
        self,
        clock: VirtualClock | None = None,
        *,
        rng: random.Random | None = None,
        shuffle: Shuffle = "none",
        step_seconds: float = 0.0,
        steps_max: int = STEPS_MAX,
        time_max: float | None = None,
        executor_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__()
        self.clock = clock or VirtualClock()
        self.steps = 0
        self.crash_at_step: int | None = None
        self.unhandled: list[Unhandled] = []
        self._rng = rng or random.Random(0)
        self._shuffle = shuffle
        self._step_seconds = step_seconds
        self._steps_max = steps_max
        self._time_max = time_max
        self._executor_seconds = executor_seconds
        self._dead = False
        self._tasks: list[weakref.ref[asyncio.Task[Any]]] = []
        self._tasks_pruned_at = 64
        self.set_exception_handler(self._note_unhandled)

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end. Raises `Crashed` if the life ends first, or what `SimulationStopped` stands for."""
        task = self.create_task(main, name="main")
        task.add_done_callback(lambda _: self.stop())
        try:
            self.run_forever()
        except BaseException:
            # Whatever stopped the loop, no one will resume these coroutines.
            self.abandon()
            raise
        return task.result()

    def finish(self) -> list[str]:
        """End an orderly life: cancel what is left, run it out, close the loop. Returns what was left, described."""
        left = [task for task in self._alive() if not task.done()]
        described = [_describe(task) for task in left]

        async def wait_for_the_rest() -> None:
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self.shutdown_asyncgens()

        self.run(wait_for_the_rest())
        self.close()
        return described

    def crash(self) -> None:
        """Kill this life: the loop stops after the callback that runs now, and nothing of it runs again."""
        self._dead = True

    def abandon(self) -> None:
        """Bury every task of this life, before they can make noise, and close the loop, which must not run."""
        self._dead = True
        self._bury()

    @property
    def dead(self) -> bool:
        return self._dead

    def block(self, seconds: float) -> None:
        """Time passes while the running callback does something slow: nothing else gets to run meanwhile."""
        self.clock.now += seconds

    def waiting(self) -> list[str]:
        """What every unfinished task is and where it waits, in the order in which they were made."""
        return [_describe(task) for task in self._alive() if not task.done()]

    # --- what asyncio calls -----------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.clock.now

    def create_task(self, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        if self._dead:
            coro.close()
            raise Crashed("a dead life starts no task")
        task = super().create_task(coro, **kwargs)
        self._tasks.append(weakref.ref(task))
        if len(self._tasks) > self._tasks_pruned_at:
            self._tasks = [ref for ref in self._tasks if (known := ref()) is not None and not known.done()]
            self._tasks_pruned_at = 64 + 2 * len(self._tasks)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self._executor_seconds(), work)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Nothing to shut down: there are no threads."""

    def _write_to_self(self) -> None:
        """No one sleeps in a selector, so there is no one to wake."""

    def _process_events(self, event_list: Any) -> None:
        raise NotImplementedError("there are no sockets in the simulation")

    def _note_unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self._dead and not self.is_closed():
            self.unhandled.append(Unhandled(context["message"], context.get("exception")))

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self._dead:
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def _run_once(self) -> None:
        ready = self._ready
        due = self._take_due(wait=not ready and not self._stopping)
        if self._shuffle != "none" and len(due) > 1:
            self._rng.shuffle(due)
        ready.extend(due)
        if self._shuffle == "all" and len(ready) > 1:
            mixed = list(ready)
            self._rng.shuffle(mixed)
            ready.clear()
            ready.extend(mixed)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            self.steps += 1
            if self._step_seconds:
                self.clock.now += self._step_seconds
            if self.steps == self.crash_at_step:
                self.crash()
            if not self._dead:
                handle._run()
            if self._dead:
                raise Crashed("the simulated process has crashed")
        if self.steps > self._steps_max:
            raise StepBudgetExceeded(f"more than {self._steps_max:,} steps in one life", self.waiting())

    def _take_due(self, *, wait: bool) -> list[asyncio.Handle]:
        """The timers that are due, off the heap; if nothing is and `wait`, after moving the clock to the next one."""
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if wait:
            if not scheduled:
                raise Deadlock("nothing is ready and no timer is set", self.waiting())
            if self._time_max is not None and scheduled[0].when() > self._time_max:
                raise Overdue(f"still running at {self._time_max:g} virtual seconds", self.waiting())
            self.clock.now = max(self.clock.now, scheduled[0].when())
        due: list[asyncio.Handle] = []
        while scheduled and scheduled[0].when() <= self.clock.now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle.cancelled():
                self._timer_cancelled_count -= 1
            else:
                due.append(handle)
        return due

    # --- after a crash ----------------------------------------------------------------------------------------------

    def _alive(self) -> list[asyncio.Task[Any]]:
        return [task for ref in self._tasks if (task := ref()) is not None]

    def _bury(self) -> None:
        """Close every coroutine of this life now, while the disk already refuses it.

        Python would close them anyway, at some later moment, and warn about it. Their `finally` blocks do run, but they
        have nothing left to act on: the disk, the loop and the recorder of a dead life refuse.
        """
        for task in self._alive():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            for _ in range(CLOSE_ATTEMPTS_MAX):
                try:
                    if coroutine is not None:
                        coroutine.close()
                    break
                except BaseException:  # a finally block may raise anything, or wait again
                    continue
        self.close()


def _describe(task: asyncio.Task[Any]) -> str:
    """`name (coroutine) at file:line`, where the line is the innermost one that waits."""
    coroutine = task.get_coro()
    innermost: FrameType | None = None
    inner: Any = coroutine
    while inner is not None:
        innermost = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None) or innermost
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    name = coroutine.__qualname__ if isinstance(coroutine, CoroutineType) else repr(coroutine)
    place = f"{innermost.f_code.co_filename}:{innermost.f_lineno}" if innermost else "not started"
    return f"{task.get_name()} ({name}) at {place}"
