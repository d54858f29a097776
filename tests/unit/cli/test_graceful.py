"""Ctrl-C, as asyncio tells it, lets a command finish what it has in hand."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sealane.cli import graceful
from sealane.cli.graceful import finish_in_hand


async def until(go_on: asyncio.Event, failure: Exception | None = None) -> None:
    """Work that goes on until then, and may fail."""
    await go_on.wait()
    if failure is not None:
        raise failure


async def interrupted(work: Coroutine[Any, Any, None], *, stop_is_worth_it: bool = True) -> asyncio.Task[None]:
    """A task that does the work, and was cancelled."""
    stopped = asyncio.Event()

    def stop() -> bool:
        stopped.set()
        return stop_is_worth_it

    task = asyncio.create_task(finish_in_hand(work, stop))
    await asyncio.sleep(0)
    task.cancel()
    await stopped.wait()
    return task


async def test_work_that_is_not_interrupted_ends_as_it_does() -> None:
    async def succeed() -> None:
        await asyncio.sleep(0)

    async def fail() -> None:
        raise ValueError("no")

    await finish_in_hand(succeed(), bool)
    with pytest.raises(ValueError, match="no"):
        await finish_in_hand(fail(), bool)


async def test_what_is_in_hand_is_waited_for() -> None:
    in_hand = asyncio.Event()
    task = await interrupted(until(in_hand))
    assert not task.done()
    in_hand.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_where_nothing_is_in_hand_it_ends_at_once() -> None:
    task = await interrupted(until(asyncio.Event()), stop_is_worth_it=False)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful, "FINISH_SECONDS", 0.01)
    task = await interrupted(until(asyncio.Event()))
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_fails_after_ctrl_c_is_of_no_interest() -> None:
    go_on = asyncio.Event()
    task = await interrupted(until(go_on, ValueError("no")))
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
