"""A client process: `python -m tests.kill.client ROLE URL RECORD SEED`. SIGTERM asks it to finish what it is at."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
from pathlib import Path

import uvloop

import sealane
from tests.kill.consuming import Consumers
from tests.kill.producing import Producers
from tests.kill.recording import Recorder

CALL_SECONDS = 120.0
"""Longer than any series of deaths: a call is to succeed once the node is back."""


async def main() -> None:
    role, url, record, seed = sys.argv[1:]
    recorder = Recorder(Path(record))
    chance = random.Random(f"{seed} {role}")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with sealane.connect(url, timeout=CALL_SECONDS, connect_timeout=CALL_SECONDS, name=role) as lane:
        if role == "producers":
            await Producers(lane, recorder, chance, stop).run()
        else:
            consuming = asyncio.create_task(Consumers(lane, recorder, chance).run(alone=role.endswith("0")))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({consuming, stopping}, return_when=asyncio.FIRST_COMPLETED)
            consuming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await consuming
    recorder.close()


if __name__ == "__main__":
    uvloop.run(main())
