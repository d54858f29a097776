"""How long a directory with many topics and messages takes until its broker is ready: after a stop, after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import sealane

BATCH = 5_000


async def fill(directory: Path, *, topics: int, messages: int) -> None:
    """Spread the messages over the topics, with a subscription each that has settled half of its own."""
    payloads = [os.urandom(100) for _ in range(BATCH)]
    rounds = max(1, messages // BATCH // topics)
    async with sealane.embedded(directory) as lane:
        for index in range(topics):
            topic = f"topic-{index}"
            for _ in range(rounds):
                await lane.publish_many(topic, payloads)
            settled = 0
            async for batch in lane.consume_batches(topic, subscription="bench", messages_max=BATCH):
                settled += len(batch)
                await batch.ack()
                if settled >= rounds * BATCH // 2:
                    break


async def ready_seconds(directory: Path) -> float:
    begun = time.perf_counter()
    async with sealane.embedded(directory) as lane:
        await lane.topics()
        return time.perf_counter() - begun


def crash_while_filled(directory: Path, *, topics: int, messages: int) -> None:
    """Fill in a process of its own, which is killed when it is done and before it can close."""
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "import sealane\n"
        "from bench import start_up\n"
        "class Embedded(type(sealane.embedded())):\n"
        "    async def __aexit__(self, *error):\n"
        "        print('full', flush=True)\n"
        "        await asyncio.sleep(3600)\n"
        "sealane.embedded = Embedded\n"
        f"asyncio.run(start_up.fill(Path(sys.argv[1]), topics={topics}, messages={messages}))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(directory)], stdout=subprocess.PIPE)
    try:
        if child.stdout is None or child.stdout.readline() != b"full\n":
            raise RuntimeError("the process that was to fill the directory ended early")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def fill_now(directory: Path, *, topics: int, messages: int) -> None:
    asyncio.run(fill(directory, topics=topics, messages=messages))
