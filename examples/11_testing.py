"""Testing your own code: the fixture `sealane_lane` is a broker in memory, a new one for each test.

Run it with `pytest examples/11_testing.py`; with Sealane and pytest-asyncio installed there is nothing to set up.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import sealane


async def greet(lane: sealane.Lane) -> None:
    """The code under test: answers each name with a greeting, in one step with taking it."""
    async for name in lane.consume("names", subscription="greeter"):
        async with lane.transaction(f"greet {name.id}") as transaction:
            await transaction.publish("greetings", b"hello " + name.payload)
            await transaction.ack(name)
        return


@pytest.mark.asyncio
async def test_a_name_is_greeted(sealane_lane: sealane.Lane) -> None:
    await sealane_lane.publish("names", b"ann")
    await greet(sealane_lane)
    async for greeting in sealane_lane.consume("greetings", subscription="test"):
        assert greeting.payload == b"hello ann"
        break


if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", __file__, "-v", "-p", "no:cacheprovider", *sys.argv[1:]]
    sys.exit(subprocess.run(command, check=False).returncode)
