"""Group commit: everything that waits is written as one record, with one sync.

A group is written on the event loop or on a thread. On the loop there is no hand-over, which is the fastest a lone
commit can be; on a thread the loop stays free, and the next group gathers meanwhile. `FlushPolicy` chooses. The thread
gets the next group before the callers of the last one are told: answers and deliveries take as long as a write, and the
disk would wait for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from sealane.engine.local.runner import Runner

_WEIGHT = 0.25
"""How much the latest flush counts in the running averages: about the last four decide."""

INLINE_COMMITS_MAX = 1.5
"""On average more commits than this in a group mean that others wait too: they are better off with a free loop."""


class FlushPolicy:
    """Chooses inline or thread for each group, from what waits and what the last flushes saw. Pure."""

    def __init__(
        self, commit: Literal["auto", "inline", "thread"], *, inline_bytes_max: int, inline_seconds_max: float
    ) -> None:
        self._fixed = None if commit == "auto" else commit == "inline"
        self._inline_bytes_max = inline_bytes_max
        self._inline_seconds_max = inline_seconds_max
        self._commits = 1.0
        self._seconds = 0.0

    def inline(self, commits: int, group_bytes: int) -> bool:
        if self._fixed is not None:
            return self._fixed
        return (
            group_bytes <= self._inline_bytes_max
            and commits <= INLINE_COMMITS_MAX
            and self._commits <= INLINE_COMMITS_MAX
            and self._seconds <= self._inline_seconds_max
        )

    def saw(self, commits: int, group_bytes: int, seconds: float) -> None:
        """Learn from a flush. Large groups take long for their size; how long a small one takes, they do not tell."""
        self._commits += _WEIGHT * (commits - self._commits)
        if group_bytes <= self._inline_bytes_max:
            self._seconds += _WEIGHT * (seconds - self._seconds)


class Waiting(Protocol):
    @property
    def size(self) -> int:
        """About how many bytes it adds to the group."""
        ...


W = TypeVar("W", bound=Waiting)
R = TypeVar("R")


class GroupCommit(Generic[W, R]):
    """Gathers commits and writes them in groups, one group at a time, in the order they were submitted.

    `write` does the blocking work and runs wherever the policy says; `landed` and `failed` run on the loop. When a
    write (or `landed`) raises, `failed` gets the group and everything that waits behind it: their places were counted
    on it. `measured` hears of each group that landed: its commits, its bytes and the seconds it took.
    """

    def __init__(
        self,
        write: Callable[[list[W]], R],
        landed: Callable[[list[W], R], None],
        failed: Callable[[list[W], Exception], None],
        *,
        runner: Runner,
        policy: FlushPolicy,
        group_bytes_max: int,
        clock: Callable[[], int],
        measured: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self._write = write
        self._landed = landed
        self._failed = failed
        self._runner = runner
        self._policy = policy
        self._group_bytes_max = group_bytes_max
        self._clock = clock
        self._measured = measured
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[W] = deque()
        self._scheduled = False
        self._writing = False
        """Whether a group is on the thread."""
        self._failure: Exception | None = None
        """Why a group could not be taken in that had been written."""
        self._submitted = 0
        self._settled = 0
        self._barriers: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.bytes_waiting = 0

    def submit(self, item: W) -> None:
        self._waiting.append(item)
        self._submitted += 1
        self.bytes_waiting += item.size
        if not self._scheduled and not self._writing:
            # Not at once: what else is called in this pass of the loop shares the record.
            self._scheduled = True
            self._loop.call_soon(self._flush)

    async def barrier(self) -> None:
        """Return once everything that was submitted before has landed or failed."""
        if self._settled < self._submitted:
            reached: asyncio.Future[None] = self._loop.create_future()
            self._barriers.append((self._submitted, reached))
            await reached

    def _flush(self) -> None:
        self._scheduled = False
        if self._writing or not self._waiting:
            return
        group, group_bytes = self._take()
        if self._policy.inline(len(group), group_bytes):
            started_us = self._clock()
            try:
                result = self._write(group)
            except Exception as error:
                self._settle_failure(group, error)
            else:
                self._settle(group, group_bytes, started_us, result)
        else:
            self._hand_over(group, group_bytes)

    def _hand_over(self, group: list[W], group_bytes: int) -> None:
        try:
            written = self._runner.begin(lambda: self._write(group))
        except RuntimeError as error:  # The runner is closed.
            self._settle_failure(group, error)
            return
        self._writing = True
        written.add_done_callback(partial(self._written, group, group_bytes, self._clock()))

    def _written(self, group: list[W], group_bytes: int, started_us: int, written: asyncio.Future[R]) -> None:
        self._writing = False
        error = self._failure or written.exception()
        if isinstance(error, Exception):
            self._settle_failure(group, error)
            return
        result = written.result()
        if self._waiting and not self._policy.inline(len(self._waiting), self.bytes_waiting):
            self._hand_over(*self._take())
        self._settle(group, group_bytes, started_us, result)

    def _take(self) -> tuple[list[W], int]:
        if self.bytes_waiting <= self._group_bytes_max:
            group, group_bytes = list(self._waiting), self.bytes_waiting
            self._waiting.clear()
        else:
            group, group_bytes = [], 0
            while self._waiting and (not group or group_bytes + self._waiting[0].size <= self._group_bytes_max):
                item = self._waiting.popleft()
                group.append(item)
                group_bytes += item.size
        self.bytes_waiting -= group_bytes
        return group, group_bytes

    def _settle(self, group: list[W], group_bytes: int, started_us: int, result: R) -> None:
        seconds = max(0, self._clock() - started_us) / 1e6
        self._policy.saw(len(group), group_bytes, seconds)
        try:
            self._landed(group, result)
        except Exception as error:
            # What is on the thread by now has counted on this group as much as what waits.
            self._failure = error
            self._settle_failure(group, error)
            return
        self._count(len(group))
        if self._measured is not None:
            self._measured(len(group), group_bytes, seconds)

    def _settle_failure(self, group: list[W], error: Exception) -> None:
        everything = [*group, *self._waiting]
        self._waiting.clear()
        self.bytes_waiting = 0
        self._failed(everything, error)
        self._count(len(everything))

    def _count(self, settled: int) -> None:
        self._settled += settled
        while self._barriers and self._barriers[0][0] <= self._settled:
            reached = self._barriers.popleft()[1]
            if not reached.done():
                reached.set_result(None)
        if self._waiting and not self._scheduled and not self._writing:
            self._scheduled = True
            self._loop.call_soon(self._flush)
