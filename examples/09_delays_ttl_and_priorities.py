"""Time and urgency: messages that come later, messages that are worthless after a while, messages that come first."""

from __future__ import annotations

import asyncio

import sealane


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.publish("tasks", b"delayed by 2 s", delay=2)
        await lane.publish("tasks", b"worthless after 0.1 s", ttl=0.1)
        await lane.publish("tasks", b"ordinary")
        await lane.publish("tasks", b"urgent", priority=9)
        await lane.publish("tasks", b"whenever you like", priority=1)
        await asyncio.sleep(0.15)  # Nobody was there to take it in time.

        expected = 4
        async for task in lane.consume("tasks", subscription="workers"):
            print(f"priority {task.priority}: {task.payload.decode()}")
            await task.ack()
            expected -= 1
            if not expected:
                break


asyncio.run(main())
