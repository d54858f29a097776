"""Order per key: several workers, and yet the messages of one customer are handled one after another, in order.

In the mode `key-shared` a key belongs to one consumer while it holds messages of that key; other keys go on beside it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

import sealane

CUSTOMERS = ("ann", "bob", "cem", "dia")
STEPS = ("ordered", "paid", "packed", "sent")


async def work(lane: sealane.Lane, handled: defaultdict[str, list[str]], finished: asyncio.Event) -> None:
    async for event in lane.consume("events", subscription="status", mode="key-shared", prefetch=4):
        await asyncio.sleep(0.002)
        assert event.key is not None
        handled[event.key.decode()].append(event.payload.decode())
        await event.ack()
        if sum(map(len, handled.values())) == len(CUSTOMERS) * len(STEPS):
            finished.set()


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.create_topic("events", partitions=2)
        for step in STEPS:
            for customer in CUSTOMERS:
                await lane.publish("events", step.encode(), key=customer.encode())

        handled: defaultdict[str, list[str]] = defaultdict(list)
        finished = asyncio.Event()
        workers = [asyncio.create_task(work(lane, handled, finished)) for _ in range(3)]
        await finished.wait()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

        for customer in CUSTOMERS:
            print(f"{customer}: {', '.join(handled[customer])}")


asyncio.run(main())
