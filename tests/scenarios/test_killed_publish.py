"""Killing the process between any two commits of a publish of staged parts leaves each message published once."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

import sealane
from tests.scenarios.killed_publisher import BATCHES, MESSAGES, SETTINGS, STORAGE
from tests.staged import stored

ROOT = Path(__file__).parents[2]
LIFE_SECONDS_MAX = 60.0


async def live(directory: Path, attempt: int, commits: int) -> bool | None:
    """What the life says of its publish; None if it was killed before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.scenarios.killed_publisher",
        str(directory),
        str(attempt),
        str(commits),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    async with asyncio.timeout(LIFE_SECONDS_MAX):
        said, _ = await process.communicate()
    assert process.returncode in (0, -9)
    return said == b"True\n" if process.returncode == 0 else None


async def published(directory: Path) -> list[bytes]:
    async with sealane.embedded(directory, settings=SETTINGS, storage=STORAGE) as lane:
        # The same epoch again waits for what is under way, and changes nothing.
        assert await lane.publish_staged("query", [], epoch=7) is False
        return await stored(lane, "orders")


EVERYTHING = [b"%s %d" % (part, number) for part in (b"left", b"right") for number in range(BATCHES * MESSAGES)]


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 2, 4, 7])
async def test_a_publish_that_was_killed_is_completed_by_the_next_start(tmp_path: Path, commits: int) -> None:
    assert await live(tmp_path, 0, commits) is None, "it was to be killed"
    assert await published(tmp_path) == EVERYTHING


@pytest.mark.slow
async def test_a_job_that_is_killed_and_started_again_publishes_everything_once(tmp_path: Path) -> None:
    attempts = 0
    while await live(tmp_path, attempts, commits=1 + 10 * attempts) is None:
        attempts += 1
        assert attempts < 30
    assert attempts > 2
    assert await published(tmp_path) == EVERYTHING
