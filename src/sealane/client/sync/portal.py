"""An event loop on a thread of its own, with something open in it, and calls into it from every other thread."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from sealane.errors import Closed, DeadlineExceeded, WouldBlock

P = ParamSpec("P")
R = TypeVar("R")
Opened = TypeVar("Opened")
Reason = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]

CLOSE_SECONDS = 30.0
"""Closing waits no longer for the thread to end: a lane takes up to 5 s for the node, a broker also for its disk."""
EXIT_SECONDS = 2.0
"""What was never closed gets so long, all together, when the interpreter ends."""
LOOK_SECONDS = 1.0
"""A caller that waits for long looks so often whether the thread that should answer is still there."""

_NO_REASON: Reason = (None, None, None)
_open_portals: weakref.WeakSet[Portal[Any]] = weakref.WeakSet()


class Portal(Generic[Opened]):
    """Opens what `open` makes, in a new thread's event loop, and keeps it open until `close`."""

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[Opened]]) -> None:
        self._open = open
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._opened: Future[Opened] = Future()
        self._end: asyncio.Event | None = None
        self._reason = _NO_REASON
        self._calls: set[Future[Any]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._before_end: weakref.WeakSet[Any] = weakref.WeakSet()
        self._closing_error: BaseException | None = None
        self._abandoned = False
        self.problem: str | None = "is not open yet: use it in a `with` block"
        """Why there can be no calls, if so."""

    # --- life ---------------------------------------------------------------------------------------------------------

    def open(self) -> Opened:
        """Start the thread and return what is open; raises what opening it raised."""
        self._refuse_in_a_running_loop()
        if self._thread is not None:
            raise Closed("the lane was opened before: make a new one")
        # A daemon: a lane that nobody closed must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name="sealane", daemon=True)
        try:
            self._thread.start()
            opened = self._wait(self._opened)
        except BaseException:
            # Refused, or the caller was interrupted while it waited: then what is half open closes.
            self._abandoned = True
            self.soon(self._cancel)
            self._thread.join(CLOSE_SECONDS)
            raise
        self.problem = None
        _open_portals.add(self)
        return opened

    def close(self, reason: Reason = _NO_REASON) -> None:
        """Close what is open, as a block that ends for that reason, and end the thread. Idempotent."""
        if self._thread is None or self._was_forked():
            return
        self._refuse_in_a_running_loop()
        self._begin_close(reason)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            raise DeadlineExceeded(f"the lane did not close within {CLOSE_SECONDS:g} s; it goes on in the background")
        error, self._closing_error = self._closing_error, None
        if error is not None:
            raise error

    def _begin_close(self, reason: Reason) -> None:
        _open_portals.discard(self)
        if self.problem is None:
            self.problem = "is closed"
            self._reason = reason
            assert self._end is not None
            self.soon(self._end.set)

    def abandon(self) -> None:
        """Close without waiting for it."""
        if not self._was_forked():
            self._begin_close(_NO_REASON)

    def close_at_exit(self, seconds: float) -> None:
        """The interpreter ends: try to close in order, and end the thread in any case."""
        if self._was_forked() or self._thread is None:
            return
        self._begin_close(_NO_REASON)
        self._thread.join(seconds / 2)
        if self._thread.is_alive():
            self.soon(self._cancel)
            self._thread.join(seconds / 2)

    def forked(self) -> None:
        """In a child process: the thread is in the parent, and so is the connection."""
        self.problem = "was opened before this process was forked: open another one in the child"

    def _was_forked(self) -> bool:
        return self.problem is not None and "forked" in self.problem

    # --- calls --------------------------------------------------------------------------------------------------------

    def call(self, function: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it on the event loop and return what it returns. An interrupted caller cancels it."""
        return self._ask(lambda: function(*args, **kwargs))

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for what does not wait."""

        async def work() -> R:
            return function(*args, **kwargs)

        return self._ask(work)

    def soon(self, callback: Callable[[], object]) -> None:
        """Have it run on the event loop, in the order of the calls; nothing happens if that has ended."""
        if self._loop is not None and not self._was_forked():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """On the event loop: begin work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def before_end(self, owner: Any) -> None:
        """Have `owner.flush_last()` called on the event loop before what is open closes."""
        self._before_end.add(owner)

    def check(self) -> None:
        if self.problem is not None:
            raise Closed(f"the lane {self.problem}")

    def _ask(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        self.check()
        self._refuse_in_a_running_loop()
        assert self._loop is not None
        answer: Future[R] = Future()
        task: asyncio.Task[R] | None = None

        def begin() -> None:
            nonlocal task
            if not answer.done():
                task = asyncio.ensure_future(work())
                task.add_done_callback(lambda done: _pass_on(done, answer))

        self._calls.add(answer)
        try:
            self._loop.call_soon_threadsafe(begin)
            return self._wait(answer)
        except RuntimeError as error:
            if self._loop.is_closed() and not answer.done():
                raise Closed("the lane is closed") from error
            raise
        except BaseException:
            if not answer.done():
                answer.cancel()
                self.soon(lambda: task and task.cancel())
            raise
        finally:
            self._calls.discard(answer)

    def _wait(self, answer: Future[R]) -> R:
        while True:
            try:
                return answer.result(LOOK_SECONDS)
            except CancelledError:
                raise Closed("the lane was closed meanwhile; whether the work happened is unknown") from None
            except TimeoutError:
                if answer.done():
                    raise
                assert self._thread is not None
                if not self._thread.is_alive():
                    raise Closed("the lane's thread has ended; whether the work happened is unknown") from None

    def _refuse_in_a_running_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        if threading.current_thread() is self._thread:
            raise WouldBlock("a callback of a lane may not call that lane, which waits for it; use another thread")
        raise WouldBlock(
            "a blocking call would stop the event loop that runs in this thread; use `async with sealane.connect(…)` "
            "(or `sealane.embedded`) here, or call from another thread with `await asyncio.to_thread(…)`"
        )

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._fail(self._opened, error)
            self._closing_error = error
        finally:
            if self.problem is None:
                self.problem = "is closed"
            # The loop is closed: whoever has asked before that and was not heard must not wait for ever.
            for answer in list(self._calls):
                self._fail(answer, Closed("the lane was closed meanwhile; whether the work happened is unknown"))

    async def _serve(self) -> None:
        self._main = asyncio.current_task()
        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        manager = self._open()
        if self._abandoned:
            return
        try:
            opened = await manager.__aenter__()
        except asyncio.CancelledError:
            self._fail(self._opened, Closed("the lane was closed while it opened"))
            return
        except Exception as error:
            self._fail(self._opened, error)
            return
        try:
            self._opened.set_result(opened)
            await self._end.wait()
            for owner in list(self._before_end):
                owner.flush_last()
        except asyncio.CancelledError as cancelled:
            self._reason = (type(cancelled), cancelled, None)
        await manager.__aexit__(*self._reason)

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()

    @staticmethod
    def _fail(answer: Future[Any], error: BaseException) -> None:
        with suppress(InvalidStateError):
            answer.set_exception(error)


def _pass_on(task: asyncio.Task[R], answer: Future[R]) -> None:
    with suppress(InvalidStateError):
        if task.cancelled():
            answer.cancel()
        elif (error := task.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(task.result())


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _close_all_at_exit() -> None:
    portals = list(_open_portals)
    for portal in portals:
        portal.close_at_exit(EXIT_SECONDS / len(portals))


def _mark_all_as_forked() -> None:
    for portal in list(_open_portals):
        portal.forked()


atexit.register(_close_all_at_exit)
os.register_at_fork(after_in_child=_mark_all_as_forked)
