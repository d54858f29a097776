# ruff: noqa: ASYNC110 - polling the virtual clock is what some of these tests are about
from __future__ import annotations

import asyncio
import gc
import random
import warnings

import pytest

from tests.simulation.ends import Crashed, Deadlock, Overdue, StepBudgetExceeded
from tests.simulation.loop import VirtualClock, VirtualLoop


def run(main, **options):
    loop = VirtualLoop(**options)
    try:
        return loop.run(main)
    finally:
        if not loop.is_closed():
            loop.finish()


def test_a_day_of_sleep_passes_at_once_and_the_clock_shows_it():
    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(86_400)
        return loop.time()

    assert run(main()) == 86_400


def test_timers_fire_in_the_order_of_their_deadlines():
    async def main():
        order = []

        async def wake(seconds):
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*(wake(s) for s in (5, 1, 3, 2, 4)))
        return order

    assert run(main()) == [1, 2, 3, 4, 5]


def test_timeouts_run_on_virtual_time():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.sleep(11)
        return asyncio.get_running_loop().time()

    assert run(main()) == 10


async def order_of_wakeups():
    order = []

    async def note(number):
        await asyncio.sleep(0)
        order.append(number)

    await asyncio.gather(*(note(n) for n in range(10)))
    return order


async def order_of_equal_timers():
    order: list[int] = []
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    for number in range(10):
        loop.call_at(5.0, order.append, number)
    loop.call_at(6.0, done.set_result, None)
    await done
    return order


def test_without_shuffling_what_is_ready_runs_first_in_first_out():
    assert run(order_of_wakeups()) == list(range(10))


def test_shuffling_timers_keeps_first_in_first_out_for_what_is_ready():
    assert run(order_of_wakeups(), shuffle="timers", rng=random.Random(1)) == list(range(10))
    assert run(order_of_equal_timers(), shuffle="timers", rng=random.Random(1)) != list(range(10))


def test_one_seed_gives_one_schedule_and_another_seed_another():
    first, again, other = (run(order_of_wakeups(), shuffle="all", rng=random.Random(s)) for s in (1, 1, 2))
    assert first == again
    assert sorted(first) == list(range(10))
    assert first != other


def test_cancelled_timers_do_not_move_the_clock():
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(500):
            loop.call_later(1000, lambda: None).cancel()
        await asyncio.sleep(1)
        return loop.time()

    assert run(main()) == 1


def test_the_wall_clock_jumps_and_monotonic_time_does_not():
    clock = VirtualClock()

    async def main():
        await asyncio.sleep(1.5)
        before = clock.wall_us()
        clock.jump_wall(-3600)
        clock.jump_wall(10)
        return clock.wall_us() - before

    assert run(main(), clock=clock) == -3590 * 1_000_000
    assert clock.now == 1.5


def test_a_task_that_polls_the_clock_sees_it_move():
    async def main():
        loop = asyncio.get_running_loop()
        while loop.time() < 0.001:
            await asyncio.sleep(0)

    run(main(), step_seconds=1e-6)


def test_a_deadlock_names_the_tasks_that_wait():
    async def waits_for_ever():
        await asyncio.get_running_loop().create_future()

    async def main():
        await asyncio.create_task(waits_for_ever(), name="stuck")

    with pytest.raises(Deadlock) as stopped:
        run(main())
    assert any(
        "stuck" in line and "waits_for_ever" in line and "test_loop.py" in line for line in stopped.value.waiting
    )


def test_a_life_that_goes_on_too_long_is_overdue():
    async def main():
        while True:
            await asyncio.sleep(1)

    with pytest.raises(Overdue, match="60 virtual seconds"):
        run(main(), time_max=60.0)


def test_a_task_that_spins_runs_out_of_steps():
    async def main():
        while True:
            await asyncio.sleep(0)

    with pytest.raises(StepBudgetExceeded):
        run(main(), steps_max=1000)


def test_executor_work_runs_inline_after_its_virtual_delay():
    async def main():
        loop = asyncio.get_running_loop()
        value = await loop.run_in_executor(None, lambda: loop.time())
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return value

    assert run(main(), executor_seconds=lambda: 2.0) == 2.0


def test_blocking_work_moves_time_while_nothing_else_runs():
    async def main():
        loop = asyncio.get_running_loop()
        fired = []
        loop.call_later(1, lambda: fired.append(loop.time()))
        assert isinstance(loop, VirtualLoop)
        loop.block(5)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return fired

    assert run(main()) == [5.0]


def test_a_crash_runs_nothing_more_and_makes_no_noise():
    ran = []
    clock = VirtualClock()

    async def waits_again_in_its_finally():
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            ran.append("after the crash")

    async def yields_forever():
        try:
            while True:
                yield 1
                await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0)
            ran.append("generator")

    async def iterates():
        async for _ in yields_forever():
            pass

    async def never_started():
        ran.append("started")

    async def main():
        tasks = [asyncio.create_task(c()) for c in (waits_again_in_its_finally, iterates)]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(never_started()))
        loop.call_soon(ran.append, "callback")
        loop.crash()
        await asyncio.gather(*tasks)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop = VirtualLoop(clock)
        with pytest.raises(Crashed):
            loop.run(main())
        gc.collect()
    assert ran == []
    assert loop.dead
    assert loop.is_closed()
    assert loop.unhandled == []
    assert clock.now == 1


def test_a_crash_that_some_code_swallows_still_ends_the_life():
    reached: list[str] = []

    async def main():
        try:
            loop.crash()
            raise Crashed
        except BaseException:
            reached.append("the same step goes on, to no effect")
        await asyncio.sleep(0)
        reached.append("never")

    loop = VirtualLoop()
    with pytest.raises(Crashed):
        loop.run(main())
    assert len(reached) == 1


def test_a_life_can_be_crashed_at_any_step():
    def steps_until_done(crash_at):
        reached: list[int] = []

        async def main():
            for number in range(10):
                await asyncio.sleep(1)
                reached.append(number)

        loop = VirtualLoop()
        loop.crash_at_step = crash_at
        try:
            loop.run(main())
        except Crashed:
            return len(reached), True
        loop.finish()
        return len(reached), False

    _, crashed = steps_until_done(10_000)
    assert not crashed
    assert steps_until_done(1) == (0, True)
    assert 0 < steps_until_done(8)[0] < 10


def test_errors_that_no_one_awaits_are_collected():
    async def dies():
        raise ValueError("in the background")

    async def main():
        task = asyncio.create_task(dies())
        await asyncio.sleep(1)
        del task

    loop = VirtualLoop()
    loop.run(main())
    gc.collect()
    loop.finish()
    assert ["in the background" in str(error) for error in loop.unhandled] == [True]


def test_finishing_reports_the_tasks_that_were_left():
    kept = []

    async def stays():
        await asyncio.sleep(1000)

    async def main():
        kept.append(asyncio.create_task(stays(), name="forgotten"))

    loop = VirtualLoop()
    loop.run(main())
    left = loop.finish()
    assert len(left) == 1
    assert "forgotten" in left[0]
    assert loop.is_closed()


def test_a_dead_life_starts_no_task():
    async def main():
        pass

    loop = VirtualLoop()
    loop.crash()
    with pytest.raises(Crashed):
        _ = loop.create_task(main())
    loop.close()
