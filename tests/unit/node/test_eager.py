"""Work that is begun at once is done at once where it needs no wait, and is otherwise finished by a task."""

from __future__ import annotations

import asyncio

import pytest

from sealane.node.eager import begin


async def test_work_without_a_wait_is_done_when_begin_returns():
    done = []

    async def work() -> None:
        done.append("all")

    assert begin(work()) is None
    assert done == ["all"]


async def test_the_rest_is_done_by_whoever_awaits_it():
    there: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done = []

    async def work() -> None:
        done.append("before")
        done.append(await there)
        await asyncio.sleep(0)
        done.append("after")

    rest = begin(work())
    assert rest is not None
    assert done == ["before"]
    there.set_result("between")
    await rest
    assert done == ["before", "between", "after"]


async def test_work_that_begins_with_a_bare_pause_goes_on_too():
    done = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append("all")

    rest = begin(work())
    assert rest is not None
    await rest
    assert done == ["all"]


@pytest.mark.parametrize("waits_first", [False, True])
async def test_what_it_raises_comes_out_where_the_rest_is_awaited(waits_first: bool):
    async def work() -> None:
        if waits_first:
            await asyncio.sleep(0)
        raise OSError("the disk is gone")

    rest = begin(work())
    assert rest is not None
    with pytest.raises(OSError, match="the disk is gone"):
        await rest


async def test_a_task_that_is_cancelled_cancels_the_work_inside():
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append("up")

    async def finish() -> None:
        rest = begin(work())
        assert rest is not None
        await rest

    task = asyncio.ensure_future(finish())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert cleaned == ["up"]


async def test_a_rest_that_nobody_awaits_cleans_up_when_it_is_closed():
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append("up")

    rest = begin(work())
    assert rest is not None
    rest.close()
    assert cleaned == ["up"]
