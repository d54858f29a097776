"""A broker that is killed while it backs itself up, over and over. Tells what was acknowledged as `killed_broker` does.

Started as `python -m tests.scenarios.killed_backup <directory> <backups> <first number>`. Lines: `P <number>` was
published, `A <number>` was acknowledged and confirmed, `C <backup>` a backup is begun, `B <backup>` it was finished.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import sealane
from sealane.client.embedded import EmbeddedLane
from tests.scenarios.killed_broker import STORAGE, tell

SLOW = replace(STORAGE, backup_bytes_per_second_max=1 << 20)
"""So that a backup takes long enough to die in."""


async def publish(lane: sealane.Lane, first: int) -> None:
    for number in count(first):
        await lane.publish("work", b"%d" % number)
        tell(f"P {number}")


async def acknowledge(lane: sealane.Lane) -> None:
    async for message in lane.consume("work", "workers"):
        await message.ack(confirm=True)
        tell(f"A {int(message.payload)}")


async def back_up(opened: EmbeddedLane, backups: Path, first: int) -> None:
    assert opened._node is not None
    for number in count(first):
        tell(f"C {number}")
        await opened._node.backup(backups / str(number))
        tell(f"B {number}")


async def main() -> None:
    directory, backups, first = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    opened = sealane.embedded(directory, storage=SLOW)
    async with opened as lane:
        tell("ready")
        await asyncio.gather(publish(lane, first), acknowledge(lane), back_up(opened, backups, first))


if __name__ == "__main__":
    asyncio.run(main())
