"""Group commit: who waits shares a record, order is kept, and the policy chooses where it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sealane.engine.local.flush_policy import FlushPolicy
from sealane.engine.local.group_commit import LARGE_BYTES, GroupCommit

T = TypeVar("T")


class Item(NamedTuple):
    name: str
    size: int = 1


class HeldRunner:
    """A worker thread that is as slow as the test says."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self.closed = False
        self._done: list[Any] = []
        """What the first of those that wait has returned, if it is done and nobody knows yet."""

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        seen: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.waiting.append((work, seen))
        return seen

    async def run(self, work: Callable[[], T]) -> T:
        return await self.begin(work)

    def work(self) -> None:
        """Do what it was asked first. Nobody is told."""
        self._done.append(self.waiting[0][0]())

    def finish(self) -> None:
        """Tell that it is done."""
        if not self._done:
            self.work()
        self.waiting.pop(0)[1].set_result(self._done.pop())

    def close(self) -> None:
        """Nothing to let go of."""


class Recorder:
    def __init__(self, commit: Any, *, group_bytes_max: int = 100) -> None:
        self.runner = HeldRunner()
        self.groups: list[str] = []
        self.landed: list[str] = []
        self.failed: list[str] = []
        self.error: Exception | None = None
        self.on_landed: Callable[[], None] | None = None
        self.on_the_thread: list[int] = []
        self.group = GroupCommit[Item, int](
            self._write,
            self._landed,
            lambda items, error: self.failed.extend(item.name for item in items),
            runner=self.runner,
            policy=policy(commit),
            group_bytes_max=group_bytes_max,
            clock=lambda: 0,
        )

    @classmethod
    def of_large_groups(cls) -> Recorder:
        return cls("thread", group_bytes_max=10 * LARGE_BYTES)

    def _write(self, items: list[Item]) -> int:
        self.groups.append("".join(item.name for item in items))
        if self.error is not None:
            raise self.error
        return len(items)

    def _landed(self, items: list[Item], _: int) -> None:
        if self.on_landed is not None:
            self.on_landed()
        self.landed.extend(item.name for item in items)

    def submit(self, names: str, size: int = 1) -> None:
        for name in names:
            self.group.submit(Item(name, size))

    async def submit_and_write(self, names: str) -> None:
        """Have the thread write them; the loop has yet to see it."""
        self.submit(names)
        await passes()
        self.runner.work()


def policy(commit: Any = "auto") -> FlushPolicy:
    return FlushPolicy(commit, inline_bytes_max=1_000, inline_seconds_max=0.002)


async def passes(count: int = 3) -> None:
    """Let the loop go round a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_commits_of_one_pass_of_the_loop_share_a_group() -> None:
    recorder = Recorder("inline")
    recorder.submit("abc")
    assert recorder.groups == []
    await passes()
    assert recorder.groups == ["abc"]
    assert recorder.landed == ["a", "b", "c"]


async def test_while_a_group_is_on_the_thread_the_next_one_gathers() -> None:
    recorder = Recorder("thread")
    await recorder.submit_and_write("a")
    recorder.submit("b")
    await passes()
    recorder.submit("c")
    await passes()
    assert len(recorder.runner.waiting) == 1
    recorder.runner.finish()
    await passes()
    recorder.runner.finish()
    await passes()
    assert recorder.groups == ["a", "bc"]
    assert recorder.landed == ["a", "b", "c"]


async def test_the_thread_has_the_next_group_before_those_of_the_last_one_are_told() -> None:
    recorder = Recorder("thread")
    await recorder.submit_and_write("a")
    recorder.submit("b")
    recorder.on_landed = lambda: recorder.on_the_thread.append(len(recorder.runner.waiting))
    recorder.runner.finish()
    await passes()
    assert recorder.on_the_thread == [1]
    assert recorder.landed == ["a"]
    recorder.runner.finish()
    await passes()
    assert recorder.landed == ["a", "b"]


async def test_what_is_on_the_thread_fails_with_the_group_before_it_that_could_not_be_taken_in() -> None:
    recorder = Recorder.of_large_groups()

    def crash() -> None:
        raise ValueError("a bug")

    recorder.on_landed = crash
    recorder.submit("a", LARGE_BYTES)
    recorder.runner.work()
    recorder.submit("b", LARGE_BYTES)
    recorder.runner.finish()
    recorder.runner.work()
    recorder.submit("c")
    await passes()
    assert recorder.failed == ["a", "c"], "b is on the thread"
    recorder.on_landed = None
    recorder.runner.finish()
    await passes()
    assert recorder.failed == ["a", "c", "b"]
    recorder.submit("d", LARGE_BYTES)
    recorder.runner.finish()  # It was asked for c, too.
    await passes()
    assert recorder.failed == ["a", "c", "b", "d"]
    assert recorder.landed == []
    assert recorder.groups == ["a", "b"]


async def test_for_much_the_thread_is_asked_at_once_and_takes_what_waits_when_it_comes() -> None:
    recorder = Recorder.of_large_groups()
    recorder.submit("a", LARGE_BYTES)
    assert len(recorder.runner.waiting) == 1
    recorder.submit("b")
    recorder.submit("c", LARGE_BYTES)
    recorder.runner.work()
    assert recorder.groups == ["abc"]
    recorder.runner.finish()
    await passes()
    assert recorder.landed == ["a", "b", "c"]


async def test_one_large_group_is_written_after_another_while_the_loop_is_busy() -> None:
    recorder = Recorder.of_large_groups()
    recorder.submit("a", LARGE_BYTES)
    recorder.runner.work()
    recorder.submit("bc", LARGE_BYTES)
    recorder.runner.finish()
    recorder.runner.work()
    assert recorder.groups == ["a", "bc"]
    assert recorder.landed == [], "the loop has seen nothing of it"
    recorder.submit("d", LARGE_BYTES)
    recorder.runner.finish()
    recorder.runner.finish()
    await passes()
    assert recorder.groups == ["a", "bc", "d"]
    assert recorder.landed == ["a", "b", "c", "d"]


async def test_a_small_commit_behind_a_large_group_gathers_until_it_is_done() -> None:
    recorder = Recorder.of_large_groups()
    recorder.submit("a", LARGE_BYTES)
    recorder.runner.work()
    recorder.submit("b")
    await passes()
    assert len(recorder.runner.waiting) == 1
    recorder.runner.finish()
    await passes()
    recorder.runner.finish()
    await passes()
    assert recorder.landed == ["a", "b"]


async def test_nothing_is_written_behind_a_group_that_failed_until_those_who_counted_on_it_are_told() -> None:
    recorder = Recorder.of_large_groups()
    recorder.error = OSError("full")
    recorder.submit("a", LARGE_BYTES)
    recorder.runner.work()
    recorder.submit("b", LARGE_BYTES)
    recorder.error = None
    recorder.runner.finish()
    recorder.runner.work()
    assert recorder.groups == ["a"]
    await passes()
    assert recorder.failed == ["a", "b"]
    recorder.submit("c")
    recorder.runner.finish()
    await passes()
    recorder.runner.finish()
    await passes()
    assert recorder.groups == ["a", "c"]
    assert recorder.landed == ["c"]


async def test_who_is_asked_and_finds_that_all_was_told_of_a_failure_writes_what_came_since() -> None:
    recorder = Recorder.of_large_groups()
    recorder.error = OSError("full")
    recorder.submit("a", LARGE_BYTES)
    recorder.runner.work()
    recorder.submit("b", LARGE_BYTES)
    recorder.runner.finish()
    await passes()
    assert recorder.failed == ["a", "b"]
    recorder.error = None
    recorder.submit("c")
    recorder.runner.finish()
    await passes()
    assert recorder.groups == ["a", "c"]
    assert recorder.landed == ["c"]


async def test_a_closed_runner_is_a_failure_of_the_group() -> None:
    recorder = Recorder("thread")
    recorder.runner.closed = True
    recorder.submit("a")
    await passes()
    assert recorder.failed == ["a"]


async def test_a_group_is_no_larger_than_its_limit_unless_one_commit_is() -> None:
    recorder = Recorder("inline", group_bytes_max=100)
    recorder.submit("abc", size=40)
    recorder.submit("d", size=500)
    recorder.submit("e", size=1)
    assert recorder.group.bytes_waiting == 621
    await passes(6)
    assert recorder.groups == ["ab", "c", "d", "e"]
    assert recorder.group.bytes_waiting == 0


async def test_a_failure_reaches_the_group_and_all_that_wait_behind_it() -> None:
    recorder = Recorder("thread")
    recorder.submit("a")
    await passes()
    recorder.submit("bc")
    recorder.error = OSError("broken")
    recorder.runner.finish()
    await passes()
    assert recorder.failed == ["a", "b", "c"]
    assert recorder.landed == []


async def test_a_barrier_waits_for_what_came_before_it_and_for_nothing_else() -> None:
    recorder = Recorder("thread")
    await recorder.group.barrier()
    await recorder.submit_and_write("a")
    recorder.submit("b")
    barrier = asyncio.ensure_future(recorder.group.barrier())
    await passes()
    recorder.runner.finish()
    await passes()
    assert not barrier.done()
    recorder.runner.work()
    recorder.submit("c")
    recorder.runner.finish()
    await passes()
    assert barrier.done()
    assert recorder.landed == ["a", "b"]
    recorder.runner.finish()
    await recorder.group.barrier()


async def test_a_barrier_is_passed_when_what_came_before_it_failed() -> None:
    recorder = Recorder("thread")
    recorder.error = OSError("broken")
    recorder.submit("a")
    barrier = asyncio.ensure_future(recorder.group.barrier())
    await passes()
    recorder.runner.finish()
    await barrier
