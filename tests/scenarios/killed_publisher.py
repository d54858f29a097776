"""A broker in a process that stages, publishes, and kills itself after so many commits.

Started as `python -m tests.scenarios.killed_publisher <directory> <attempt> <commits>`. The first attempt counts the
commits of its publish; a later one all of them, those by which it completes an earlier one's publish too. If it lives
long enough it says on its standard output whether its publish took effect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from sealane.client.embedded import in_process
from sealane.engine import Append
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.engine.local.files import DiskFiles
from sealane.node import Node, NodeSettings, StagingSettings
from sealane.node.surroundings import of_this_machine
from sealane.prompt import Prompt
from tests.staged import batch_of, part_of

SETTINGS = NodeSettings(staging=StagingSettings(step_bytes=4_000))
STORAGE = StorageSettings(
    segment_bytes=32 * 1024, segment_bytes_first=16 * 1024, compaction_segments_min=2, compaction_segments_max=2
)
"""Small, so that what is staged is compacted before it is published, and steps fill segments."""
BATCHES = 12
MESSAGES = 30


def doom(engine: LocalEngine, commits: int) -> None:
    """End the process in the moment in which so many more commits are durable."""
    commit, left = engine.commit, commits

    def landed(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(appends: Sequence[Append]) -> Prompt[None]:
        durable = commit(appends)
        durable.when_done(landed)
        return durable

    engine.commit = counted  # type: ignore[method-assign]


async def live(directory: Path, attempt: int, commits: int) -> None:
    surroundings = of_this_machine()
    engine = await LocalEngine.start(
        DiskFiles(directory), settings=STORAGE, clock=surroundings.clock, entropy=surroundings.entropy
    )
    if attempt:
        doom(engine, commits)
    node = await Node.open(engine, surroundings, SETTINGS)
    async with in_process(node) as lane:
        parts = []
        for part in ("left", "right"):
            name = f"{attempt} {part}"
            for number in range(BATCHES):
                payloads = [b"%s %d" % (part.encode(), number * MESSAGES + row) for row in range(MESSAGES)]
                await lane.stage("orders", batch_of(lane, name, number, payloads))
            parts.append((part_of(name), BATCHES))
        if not attempt:
            doom(engine, commits)
        took_effect = await lane.publish_staged("query", parts, epoch=7)
        print(took_effect)
    await node.close()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
