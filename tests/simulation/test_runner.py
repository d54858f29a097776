from __future__ import annotations

import asyncio
import random

import pytest

from sealane.engine.local.runner import Runner
from tests.simulation.disk import DiskFault, SimDisk
from tests.simulation.ends import Crashed
from tests.simulation.loop import VirtualLoop
from tests.simulation.runner import SimRunner


def build(**options):
    loop = VirtualLoop()
    disk = SimDisk(random.Random(0))
    disk.latency = lambda kind, size: 1.0
    disk.on_crash = loop.crash
    return loop, disk, SimRunner(loop, disk, **options)


def test_work_takes_as_long_as_its_disk_operations_and_the_loop_stays_free():
    loop, disk, runner = build(start_seconds=lambda: 0.25)
    seam: Runner = runner

    async def main():
        files = disk.mount()
        ticks = []

        async def tick():
            for _ in range(10):
                await asyncio.sleep(0.5)
                ticks.append(loop.time())

        ticking = asyncio.create_task(tick())

        def work():
            file = files.open("a", create=True)
            file.write_at(0, [b"x"])
            file.sync()
            return "done"

        assert await seam.run(work) == "done"
        assert loop.time() == 3.25
        assert len(ticks) == 6
        await ticking

    loop.run(main())
    loop.finish()


def test_disk_work_on_the_loop_blocks_it():
    loop, disk, _ = build()

    async def main():
        disk.mount().open("a", create=True).sync()
        assert loop.time() == 2.0

    loop.run(main())
    loop.finish()


def test_work_is_done_one_after_another_in_the_order_it_came():
    loop, disk, runner = build()

    async def main():
        file = disk.mount().open("a", create=True)
        order = []

        async def ask(number):
            def work():
                order.append(("begun", number, loop.time()))
                file.sync()

            await runner.run(work)
            order.append(("seen", number, loop.time()))

        await asyncio.gather(ask(1), ask(2))
        return order

    order = loop.run(main())
    assert order == [("begun", 1, 1.0), ("seen", 1, 2.0), ("begun", 2, 2.0), ("seen", 2, 3.0)]
    loop.finish()


def test_errors_of_the_work_reach_the_one_who_waits_and_the_worker_goes_on():
    loop, _, runner = build()

    async def main():
        with pytest.raises(ZeroDivisionError):
            await runner.run(lambda: 1 // 0)
        cancelled = asyncio.create_task(runner.run(lambda: 1))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await runner.run(lambda: 2) == 2

    loop.run(main())
    loop.finish()


def test_a_crash_in_the_work_ends_the_life():
    loop, disk, runner = build()

    async def main():
        files = disk.mount()
        disk.arm(DiskFault("crash_before", 0))
        try:
            await runner.run(lambda: files.open("a", create=True))
        except BaseException:
            await asyncio.sleep(1)

    with pytest.raises(Crashed):
        loop.run(main())
