"""Group commit: everything that waits is written as one record, with one sync.

A group is written on the event loop or on a thread. On the loop there is no hand-over, which is the fastest a lone
commit can be; on a thread the loop stays free, and the next group gathers meanwhile. `FlushPolicy` chooses. Where much
waits, the thread is asked for the next group while it still writes, and takes what waits by the time it comes to it:
between two large groups the disk waits for nobody, however long the loop takes for answers and deliveries.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from sealane.engine.local.flush_policy import FlushPolicy
from sealane.engine.local.runner import Runner

LARGE_BYTES = 256 << 10
"""For so much the thread is asked at once, whatever it does and whatever else the loop has to do: to write it takes as
long as answers and deliveries do. Less gathers until the thread is done with the group before: a sync costs as much as
all the rest of it."""


class Waiting(Protocol):
    @property
    def size(self) -> int:
        """About how many bytes it adds to the group."""
        ...


W = TypeVar("W", bound=Waiting)
R = TypeVar("R")


class _Ended(NamedTuple, Generic[W, R]):
    """What became of a group."""

    group: list[W]
    group_bytes: int
    seconds: float
    """How long it took where it was written."""
    inline: bool
    result: R | Exception


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
        self._taking = threading.Lock()
        """Held by whoever takes from what waits: the thread, or the loop."""
        self._scheduled = False
        self._asked = 0
        """How often the thread was asked for a group."""
        self._came = 0
        """How often it has come to take one. The thread counts, before it takes: where the loop sees as many as it
        asked for, nobody is on the way to what waits."""
        self._seen = 0
        """Of how many the loop has seen the end."""
        self._broken = False
        """Whether a group failed on the thread, and the loop has yet to see it: nothing may be written behind it."""
        self._failure: Exception | None = None
        """Why a group could not be taken in that had been written."""
        self._submitted = 0
        self._settled = 0
        self._barriers: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._submitted_bytes = 0
        self._taken_bytes = 0

    @property
    def bytes_waiting(self) -> int:
        return self._submitted_bytes - self._taken_bytes

    def submit(self, item: W) -> None:
        self._waiting.append(item)
        self._submitted += 1
        self._submitted_bytes += item.size
        self._schedule()

    async def barrier(self) -> None:
        """Return once everything that was submitted before has landed or failed."""
        if self._settled < self._submitted:
            reached: asyncio.Future[None] = self._loop.create_future()
            self._barriers.append((self._submitted, reached))
            await reached

    def _schedule(self) -> None:
        if self._asked != self._came:
            return
        if self.bytes_waiting >= LARGE_BYTES and self._failure is None and not self._may_write_here():
            self._ask()
        elif self._seen == self._asked and not self._scheduled:
            # Not at once: what else is called in this pass of the loop shares the record.
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._waiting or self._asked != self._came:
            return
        if self._failure is not None:
            self._settle_failure([], self._failure)
        elif self._may_write_here():
            self._settle(self._written_group(inline=True))
        else:
            self._ask()

    def _may_write_here(self) -> bool:
        """Whether the loop may write what waits: never beside the thread."""
        return self._seen == self._asked and self._policy.inline(len(self._waiting), self.bytes_waiting)

    def _ask(self) -> None:
        """Have the thread write what waits by the time it comes to it."""
        try:
            ended = self._runner.begin(self._come)
        except RuntimeError as error:  # The runner is closed.
            self._settle_failure([], error)
            return
        self._asked += 1
        ended.add_done_callback(self._see)

    def _come(self) -> _Ended[W, R] | None:
        """On the thread: a group, unless the one before took all of it, or failed."""
        self._came += 1
        if self._broken or self._failure is not None or not self._waiting:
            return None
        ended = self._written_group(inline=False)
        self._broken = isinstance(ended.result, Exception)
        return ended

    def _see(self, seen: asyncio.Future[_Ended[W, R] | None]) -> None:
        self._seen += 1
        ended = seen.result()
        is_sound = not self._broken and self._failure is None
        if is_sound and self._waiting and self._asked == self._came and not self._may_write_here():
            # Before the callers of the last one are told: that takes as long as a write.
            self._ask()
        if ended is not None:
            self._settle(ended)
        elif self._waiting:
            self._schedule()

    def _written_group(self, *, inline: bool) -> _Ended[W, R]:
        group, group_bytes = self._take()
        started_us = self._clock()
        result: R | Exception
        try:
            result = self._write(group)
        except Exception as error:
            result = error
        return _Ended(group, group_bytes, max(0, self._clock() - started_us) / 1e6, inline, result)

    def _take(self) -> tuple[list[W], int]:
        group: list[W] = []
        group_bytes = 0
        with self._taking:
            while self._waiting and (not group or group_bytes + self._waiting[0].size <= self._group_bytes_max):
                item = self._waiting.popleft()
                group.append(item)
                group_bytes += item.size
            self._taken_bytes += group_bytes
        return group, group_bytes

    def _settle(self, ended: _Ended[W, R]) -> None:
        group, group_bytes, seconds, inline, result = ended
        if self._failure is not None:
            self._settle_failure(group, self._failure)
            return
        if isinstance(result, Exception):
            self._settle_failure(group, result)
            return
        self._policy.saw(len(group), group_bytes, seconds, inline=inline)
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
        everything = [*group, *self._take_all()]
        self._failed(everything, error)
        # From here on nothing waits that was counted on what failed.
        self._broken = False
        self._count(len(everything))

    def _take_all(self) -> list[W]:
        with self._taking:
            everything = list(self._waiting)
            self._waiting.clear()
            self._taken_bytes = self._submitted_bytes
        return everything

    def _count(self, settled: int) -> None:
        self._settled += settled
        while self._barriers and self._barriers[0][0] <= self._settled:
            reached = self._barriers.popleft()[1]
            if not reached.done():
                reached.set_result(None)
        if self._waiting:
            self._schedule()
