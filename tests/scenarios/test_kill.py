"""Killing the process, again and again, loses nothing that was acknowledged and brings nothing back."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import sealane
from tests.scenarios.broker import all_settled, take
from tests.scenarios.killed_broker import STORAGE, id_of

LIVES = 16
ROOT = Path(__file__).parents[2]


@dataclass
class Recorder:
    """What brokers have told before they died: the truth that the directory is judged by."""

    published: set[int] = field(default_factory=set)
    offsets: dict[int, int] = field(default_factory=dict)
    acknowledged: Counter[int] = field(default_factory=Counter)
    moved: Counter[int] = field(default_factory=Counter)

    def note(self, line: str) -> None:
        kind, *numbers = line.split()
        number = int(numbers[0])
        if kind == "P":
            self.published.add(number)
        elif kind == "I":
            assert self.offsets.setdefault(number, int(numbers[1])) == int(numbers[1]), "an id was stored twice"
        elif kind == "A":
            self.acknowledged[number] += 1
        elif kind == "T":
            self.moved[number] += 1


async def live(directory: Path, recorder: Recorder, first: int, repeats: list[int], lines_until_death: int) -> None:
    """One life: killed after so many lines, or a moment later."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.scenarios.killed_broker",
        str(directory),
        str(first),
        *map(str, repeats),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n", "the broker did not come up again"
            for _ in range(lines_until_death):
                recorder.note((await process.stdout.readline()).decode())
    finally:
        process.send_signal(signal.SIGKILL)
        # What it had told before it died counts too, but for a line that was cut.
        rest, _ = await process.communicate()
    for line in rest.decode().splitlines(keepends=True):
        if line.endswith("\n"):
            recorder.note(line)


@pytest.mark.slow
async def test_killing_the_broker_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    recorder = Recorder()
    chance = random.Random(os.environ.get("SEALANE_KILL_SEED", "7"))
    for life in range(LIVES):
        known = list(recorder.offsets)
        repeats = chance.sample(known, min(20, len(known)))
        await live(directory, recorder, life * 1_000_000, repeats, chance.choice([0, 1, 10, 50, 200, 500]))

    assert not [number for number, times in recorder.acknowledged.items() if times > 1], "a confirmed message came back"
    assert not [number for number, times in recorder.moved.items() if times > 1]
    assert len(recorder.published) > 100

    async with sealane.embedded(directory, storage=STORAGE) as lane:
        for number, offset in chance.sample(sorted(recorder.offsets.items()), 50):
            assert (await lane.publish("once", b"%d" % number, id=id_of(number))).offset == offset
        stored = await everything(lane, "work")
        assert recorder.published <= set(stored), "an acknowledged message is lost"
        assert len(stored) == len(set(stored))
        assert stored == sorted(stored)
        once = await everything(lane, "once")
        assert set(recorder.offsets) <= set(once)
        assert len(once) == len(set(once))

        left = await remaining(lane, "workers")
        assert not left & set(recorder.acknowledged), "a confirmed message came back"
        untold = recorder.published - left - set(recorder.acknowledged)
        assert len(untold) <= LIVES, "more acks than those under way at each death were kept without being confirmed"

        moved = await everything(lane, "done")
        assert len(moved) == len(set(moved)), "a transaction took effect twice"
        assert set(recorder.moved) <= set(moved)
        assert await remaining(lane, "movers") == set(stored) - set(moved), "half of a transaction took effect"


async def everything(lane: sealane.Lane, topic: str) -> list[int]:
    """All messages that are stored in the topic, in order."""
    end = (await lane.describe_topic(topic)).partitions[0].end
    return [int(message.payload) for message in await take(lane.consume(topic, "judge"), end)]


async def remaining(lane: sealane.Lane, subscription: str) -> set[int]:
    """What the subscription has still to do."""
    found: set[int] = set()
    [depth] = [each.depth for each in (await lane.describe_topic("work")).subscriptions if each.name == subscription]
    if depth:
        for message in await take(lane.consume("work", subscription), depth):
            assert int(message.payload) not in found
            found.add(int(message.payload))
            await message.ack()
    await all_settled(lane, "work", subscription)
    return found
