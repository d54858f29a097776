"""A future that also tells at once.

A future's callbacks run in the next pass of the event loop. Where one follows the other, from the disk to the receipt,
each pass is time that a publisher waits: those who do something short and cannot fail are told in the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Prompt(asyncio.Future[T]):
    """Awaited like any future. Who asks by `when_done` is called within `set_result`, `set_exception` or `cancel`,
    before the setter goes on, in the order of asking.
    """

    def __init__(self, *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(loop=loop)
        self._told: list[Callable[[Prompt[T]], None]] = []

    def when_done(self, told: Callable[[Prompt[T]], None]) -> None:
        """Call it in the moment in which this is done; now if it is. What it raises is reported, and stops nobody."""
        if self.done():
            self._tell(told)
        else:
            self._told.append(told)

    def set_result(self, result: T, /) -> None:
        super().set_result(result)
        self._tell_all()

    def set_exception(self, exception: type | BaseException, /) -> None:
        super().set_exception(exception)
        self._tell_all()

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self._tell_all()
        return cancelled

    def _tell_all(self) -> None:
        everyone, self._told = self._told, []
        for told in everyone:
            self._tell(told)

    def _tell(self, told: Callable[[Prompt[T]], None]) -> None:
        try:
            told(self)
        except Exception as error:
            context = {"message": f"{told!r} failed when it was told", "exception": error, "future": self}
            self.get_loop().call_exception_handler(context)
