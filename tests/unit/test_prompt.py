"""A prompt future tells those who asked in the moment in which it is settled, and is a future for everyone else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sealane.prompt import Prompt


async def test_who_asked_is_told_within_the_setting_in_the_order_of_asking():
    prompt: Prompt[int] = Prompt()
    told: list[Any] = []
    prompt.when_done(lambda done: told.append(("first", done.result())))
    prompt.when_done(lambda done: told.append(("second", done.result())))
    prompt.set_result(7)
    assert told == [("first", 7), ("second", 7)]
    prompt.when_done(lambda done: told.append(("late", done.result())))
    assert told[-1] == ("late", 7)
    assert await prompt == 7


async def test_a_failure_and_a_cancellation_are_told_too():
    failed: Prompt[int] = Prompt()
    told: list[Any] = []
    failed.when_done(lambda done: told.append(type(done.exception())))
    failed.set_exception(OSError("broken"))
    cancelled: Prompt[int] = Prompt()
    cancelled.when_done(lambda done: told.append(done.cancelled()))
    assert cancelled.cancel()
    assert not cancelled.cancel(), "once is enough"
    assert told == [OSError, True]
    with pytest.raises(OSError, match="broken"):
        await failed


async def test_one_that_raises_stops_neither_the_setter_nor_the_others():
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    prompt: Prompt[None] = Prompt()
    told: list[str] = []
    prompt.when_done(lambda done: 1 / 0)  # type: ignore[arg-type]
    prompt.when_done(lambda done: told.append("still told"))
    prompt.set_result(None)
    assert told == ["still told"]
    assert isinstance(reported[0]["exception"], ZeroDivisionError)


async def test_it_can_be_awaited_and_shielded_like_any_future():
    prompt: Prompt[str] = Prompt()
    waiting = asyncio.ensure_future(asyncio.shield(prompt))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not prompt.done(), "its waiter was cancelled, not it"
    prompt.set_result("there")
    assert await prompt == "there"
