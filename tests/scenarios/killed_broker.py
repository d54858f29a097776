"""A broker in a process that will be killed. Tells what was acknowledged on its standard output, a line each, at once.

Started as `python -m tests.scenarios.killed_broker <directory> <first number>`. Lines: `P <number>` was published,
`I <number> <offset>` was published under the id of that number, `A <number>` was acknowledged and confirmed,
`T <number>` went through a transaction from work to done.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from itertools import count

import sealane
from sealane.engine.local import StorageSettings

STORAGE = StorageSettings(
    segment_bytes=32 * 1024, segment_bytes_first=16 * 1024, compaction_segments_min=2, compaction_segments_max=2
)
"""Small, so that segments end, and are compacted, between two deaths."""


def id_of(number: int) -> uuid.UUID:
    return uuid.UUID(int=0x7000_8000_0000_0000_0000 + number)


def tell(line: str) -> None:
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


async def publish(lane: sealane.Lane, first: int) -> None:
    for number in count(first):
        await lane.publish("work", b"%d" % number)
        tell(f"P {number}")


async def publish_with_ids(lane: sealane.Lane, numbers: list[int], first: int) -> None:
    """Begins with the ids that an earlier life was told of, or may have been about to be."""
    for number in (*numbers, *range(first, first + 1_000_000)):
        receipt = await lane.publish("once", b"%d" % number, id=id_of(number))
        tell(f"I {number} {receipt.offset}")


async def acknowledge(lane: sealane.Lane) -> None:
    async for message in lane.consume("work", "workers"):
        await message.ack(confirm=True)
        tell(f"A {int(message.payload)}")


async def transact(lane: sealane.Lane) -> None:
    async for message in lane.consume("work", "movers", prefetch=10):
        number = int(message.payload)
        async with lane.transaction(f"move {number}") as transaction:
            await transaction.publish("done", message.payload)
            await transaction.ack(message)
        tell(f"T {number}")


async def main() -> None:
    directory, first = sys.argv[1], int(sys.argv[2])
    repeats = [int(number) for number in sys.argv[3:]]
    async with sealane.embedded(directory, storage=STORAGE) as lane:
        tell("ready")
        await asyncio.gather(
            publish(lane, first), publish_with_ids(lane, repeats, first), acknowledge(lane), transact(lane)
        )


if __name__ == "__main__":
    asyncio.run(main())
