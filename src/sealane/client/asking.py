"""Asking a broker within a time: what all of a lane's commands have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sealane.client.broker import Broker
from sealane.errors import Closed, DeadlineExceeded

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0


class Asking:
    """`explain` tells why nothing gets through to the broker, if that is so: for who has waited too long."""

    def __init__(
        self, broker: Broker[Any], timeout_seconds: float, explain: Callable[[], str | None] | None = None
    ) -> None:
        self._broker = broker
        self._timeout_seconds = timeout_seconds
        self._explain = explain
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the lane is closed")

    async def _asked(self, work: Awaitable[T], what: str) -> T:
        return await self._within(work, None, what)

    async def _within(self, work: Awaitable[T], timeout: float | None, what: str) -> T:
        seconds = self._timeout_seconds if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError as error:
            if isinstance(error, DeadlineExceeded):
                raise
            trouble = self._explain() if self._explain is not None else None
            problem = f"{what} was not done within {seconds:g} s; it may still happen"
            raise DeadlineExceeded(f"{problem} ({trouble})" if trouble else problem) from None
