"""A broker that is backed up while it is used, and brought back from the backup."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import uuid
from pathlib import Path

import pytest

import sealane
from sealane.cli.log_verify import verify
from sealane.client.embedded import EmbeddedLane
from sealane.engine import BackupReport
from sealane.engine.local import StorageSettings, restore
from sealane.errors import StorageError
from tests.scenarios.broker import Broker, all_settled, described, take, take_payloads

ROOT = Path(__file__).parents[2]
TINY = StorageSettings(
    segment_bytes=16 * 1024, segment_bytes_first=8 * 1024, compaction_segments_min=2, compaction_segments_max=2
)


async def backed_up(broker: Broker, target: Path) -> BackupReport:
    assert isinstance(broker._opened, EmbeddedLane)
    assert broker._opened._node is not None
    return await broker._opened._node.backup(target)


async def test_a_restored_broker_goes_on_where_the_backup_was_taken(directory: Broker, tmp_path: Path) -> None:
    lane = directory.lane
    given = uuid.uuid4()
    await lane.create_topic("orders", partitions=2, retention_seconds=3600)
    await lane.declare_exchange("shop", "topic")
    await lane.bind("shop", "orders", "order.#")
    stored = await lane.publish("letters", b"once", id=given)
    for number in range(10):
        await lane.publish("work", b"%d" % number)
    assert await take_payloads(lane.consume("work", "workers"), 4) == [b"0", b"1", b"2", b"3"]
    async with lane.transaction("move 1") as transaction:
        await transaction.publish("done", b"moved")

    report = await backed_up(directory, tmp_path / "backup")
    await lane.publish("work", b"after the backup")
    await directory.stop()
    restore(tmp_path / "backup", tmp_path / "restored")
    assert verify(tmp_path / "restored", lambda done, total: None).damage == []

    async with sealane.embedded(tmp_path / "restored") as copy:
        assert set(await copy.topics()) >= {"default/orders", "default/work", "default/letters"}
        assert len((await copy.describe_topic("orders")).partitions) == 2
        assert (await described(copy, "work", "workers")).depth == 6
        assert await take_payloads(copy.consume("work", "workers"), 6) == [b"%d" % number for number in range(4, 10)]
        assert (await copy.publish("letters", b"again", id=given)).offset == stored.offset, "its id is remembered"
        await copy.publish_to("shop", "order.new", b"routed")
        async with copy.transaction("move 1") as transaction:
            await transaction.publish("done", b"moved twice")
        assert await take_payloads(copy.consume("done", "s"), 1) == [b"moved"]
        assert (await copy.publish("work", b"new")).offset == 10
        assert await take_payloads(copy.consume("work", "workers"), 1) == [b"new"]
    assert report.messages >= 12


async def test_backups_of_a_broker_in_full_use_hold_all_that_was_confirmed(directory: Broker, tmp_path: Path) -> None:
    directory.storage = TINY
    lane = await directory.restart()
    published: set[int] = set()
    confirmed: set[int] = set()
    ended = asyncio.Event()

    async def publish() -> None:
        number = 0
        while not ended.is_set():
            await lane.publish("work", b"%d" % number)
            published.add(number)
            number += 1

    async def acknowledge() -> None:
        async for message in lane.consume("work", "workers"):
            await message.ack(confirm=True)
            confirmed.add(int(message.payload))
            if ended.is_set():
                return

    await lane.publish("work", b"-1")
    load = [asyncio.create_task(publish()), asyncio.create_task(acknowledge())]
    moments: list[tuple[set[int], set[int]]] = []
    for number in range(4):
        moments.append((set(published), set(confirmed)))
        async with asyncio.timeout(60):
            await backed_up(directory, tmp_path / f"backup{number}")
            while len(published) < len(moments[-1][0]) + 200:  # noqa: ASYNC110 - the load goes on
                await asyncio.sleep(0.005)
    ended.set()
    await asyncio.gather(*load)
    await directory.stop()

    for number, (before, done) in enumerate(moments):
        data = tmp_path / f"restored{number}"
        restore(tmp_path / f"backup{number}", data)
        assert verify(data, lambda done, total: None).damage == []
        async with sealane.embedded(data) as copy:
            stored = await everything(copy)
            assert stored == sorted(stored)
            assert before <= set(stored), "a message with a receipt is not in the backup"
            left = await remaining(copy)
            assert not left & done, "a confirmed ack is not in the backup"


async def everything(lane: sealane.Lane) -> list[int]:
    """All that is stored in the topic, in order. A backup may be older than the topic."""
    if "default/work" not in await lane.topics():
        return []
    end = (await lane.describe_topic("work")).partitions[0].end
    return [int(message.payload) for message in await take(lane.consume("work", "judge"), end)] if end else []


async def remaining(lane: sealane.Lane) -> set[int]:
    found: set[int] = set()
    for each in (await lane.describe_topic("work")).subscriptions:
        if each.name == "workers" and each.depth:
            for message in await take(lane.consume("work", "workers"), each.depth):
                found.add(int(message.payload))
                await message.ack()
            await all_settled(lane, "work", "workers")
    return found


async def test_a_broker_in_memory_says_that_it_has_nothing_to_back_up(tmp_path: Path) -> None:
    broker = Broker(None)
    await broker.start()
    with pytest.raises(StorageError, match="in memory; start it with a data directory"):
        await backed_up(broker, tmp_path / "backup")
    await broker.stop()


@pytest.mark.slow
async def test_a_broker_killed_in_the_middle_of_a_backup_loses_nothing(tmp_path: Path) -> None:
    directory, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()
    chance = random.Random(3)
    told: dict[str, set[int]] = {"P": set(), "A": set(), "B": set(), "C": set()}
    known: dict[int, set[int]] = {}
    lives = 5
    for life in range(lives):
        await live(directory, backups, life * 1_000_000, told, known, chance.randrange(5, 120))
    assert told["C"] - told["B"], "it died in the middle of a backup"

    finished = {int(path.name) for path in backups.iterdir() if path.name.isdigit()}
    assert told["B"] <= finished
    for number in sorted(finished)[-3:]:
        restore(backups / str(number), tmp_path / f"restored{number}")
        async with sealane.embedded(tmp_path / f"restored{number}") as copy:
            assert known[number] <= set(await everything(copy))

    assert verify(directory, lambda done, total: None).damage == []
    async with sealane.embedded(directory) as lane:
        assert told["P"] <= set(await everything(lane))
        assert not await remaining(lane) & told["A"]


async def live(
    directory: Path, backups: Path, first: int, told: dict[str, set[int]], known: dict[int, set[int]], lines: int
) -> None:
    """One life, which ends so many lines after its first backup has begun."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.scenarios.killed_backup",
        str(directory),
        str(backups),
        str(first),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    assert process.stdout is not None

    def note(line: str) -> None:
        kind, number = line.split()
        told[kind].add(int(number))
        if kind == "C":
            known[int(number)] = set(told["P"])

    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"ready\n", "the broker did not come up again"
            while first not in told["C"]:
                note((await process.stdout.readline()).decode())
            for _ in range(lines):
                note((await process.stdout.readline()).decode())
    finally:
        process.send_signal(signal.SIGKILL)
        rest, _ = await process.communicate()
    for line in rest.decode().splitlines(keepends=True):
        if line.endswith("\n"):
            note(line)
