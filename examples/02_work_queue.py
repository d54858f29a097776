"""A work queue: several workers share one subscription, and each job goes to one of them.

`prefetch=1` lets a worker take a new job only when it is done with the last, so that slow jobs do not hold others up.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import sealane

JOBS = 30
WORKERS = 3


async def work(lane: sealane.Lane, name: str, done: Counter[str], finished: asyncio.Event) -> None:
    async for job in lane.consume("jobs", subscription="workers", prefetch=1):
        await asyncio.sleep(0.01)  # What the work takes.
        await job.ack()
        done[name] += 1
        if done.total() == JOBS:
            finished.set()


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.publish_many("jobs", [f"job {number}".encode() for number in range(JOBS)])

        done: Counter[str] = Counter()
        finished = asyncio.Event()
        workers = [asyncio.create_task(work(lane, f"worker {name}", done, finished)) for name in range(WORKERS)]
        await finished.wait()
        for worker in workers:
            worker.cancel()  # Leaving the loop in any way gives back what was not handled.
        await asyncio.gather(*workers, return_exceptions=True)

        print(f"{done.total()} jobs done by {len(done)} workers, each job once")


asyncio.run(main())
