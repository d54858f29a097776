"""Work that usually needs no wait, begun in the moment in which it is due rather than by a task some passes later."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> Begun | None:
    """Do the work up to its first wait. None: it is done; otherwise a task has to await the rest, or close it.

    Until its first wait the work has no current task: it may not use time-outs or locks that ask for one. What it
    raises is raised when the rest is awaited.
    """
    try:
        waited = work.send(None)
    except StopIteration:
        return None
    except Exception as error:
        return raising(error)
    return Begun(work, waited)


def raising(error: Exception) -> Begun:
    """The rest of some work that has failed: whoever awaits it gets the error."""
    return Begun(_raised(error), None)


class Begun:
    """The rest of some work, and the future that it waits for."""

    __slots__ = ("_waited", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], waited: Any) -> None:
        self._work = work
        self._waited = waited

    def __await__(self) -> Generator[Any, Any, None]:
        try:
            if self._waited is None:
                self._waited = self._work.send(None)
            while True:
                try:
                    told = yield self._waited
                except BaseException as error:
                    self._waited = self._work.throw(error)
                else:
                    self._waited = self._work.send(told)
        except StopIteration:
            return

    def close(self) -> None:
        """Nobody will await it: let the work clean up after itself."""
        self._work.close()


async def _raised(error: Exception) -> None:
    raise error
