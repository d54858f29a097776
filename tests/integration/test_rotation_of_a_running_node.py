"""Keys are exchanged on a node that serves: nothing is lost, nobody waits, and a kill at any moment changes nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import sealane
from sealane.cli.data_directory import DataDirectory
from sealane.engine.local.key_use import key_ids_on_disk
from sealane.testing.node_process import NodeProcess

DEADLINE_SECONDS = 120.0
ROUNDS = 12
SMALL = {
    "storage.segment_bytes": 256 << 10,
    "storage.segment_bytes_first": 64 << 10,
    "storage.compaction_segments_min": 2,
    "storage.compaction_segments_max": 2,
    "storage.space_retry_seconds": 0.05,
}
"""Many segments and files, so that a rotation has many moments."""
MARKER = b"MARK of orders "
LAST = b"last"


def payload(number: int) -> bytes:
    return MARKER * 30 + b"%d" % number


def number_of(message: bytes) -> int:
    return int(message.rpartition(b" ")[2])


async def resealed(lane: sealane.Lane) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await lane.administer("key.status"))["resealing"]:  # noqa: ASYNC110 - the node announces it to nobody
            await asyncio.sleep(0.02)


def keys_in_use(data: Path) -> tuple[set[int], set[int]]:
    """What the files of a stopped node refer to, and the keys that are left."""
    with DataDirectory.look(data) as view:
        used = {key for look in key_ids_on_disk(view.files, view.metadata) for key in look()}  # type: ignore[arg-type]
        return used, {key.key_id for key in view.metadata.wrapped_keys() if key.wrapped is not None}


def found_in_files(data: Path, marker: bytes) -> bool:
    return any(marker in path.read_bytes() for path in data.rglob("*") if path.is_file())


async def test_producers_and_consumers_go_on_while_everything_is_sealed_anew(tmp_path: Path) -> None:
    settings = {**SMALL, "storage.compaction_bytes_per_second_max": 4 << 20}
    with NodeProcess(tmp_path / "data", settings) as node:
        async with sealane.connect(node.url) as lane:
            await lane.publish_many("orders", [payload(number) for number in range(10_000)])
            published = 10_000
            received: list[int] = []
            over = asyncio.Event()

            async def produce() -> None:
                nonlocal published
                while not over.is_set():
                    await lane.publish("orders", payload(published))
                    published += 1

            async def consume() -> None:
                async for message in lane.consume("orders", "billing"):
                    received.append(number_of(message.payload))
                    await message.ack()
                    if message.key == LAST:
                        return

            producing, consuming = asyncio.create_task(produce()), asyncio.create_task(consume())
            before = published
            await lane.administer("key.rotate", all=True)
            await resealed(lane)
            during = published - before
            over.set()
            await producing
            await lane.publish("orders", payload(published), key=LAST)
            await asyncio.wait_for(consuming, DEADLINE_SECONDS)
            assert during > 10
            assert received == list(range(published + 1))
    used, left = keys_in_use(tmp_path / "data")
    assert used <= left
    assert len(left) == 2
    assert not found_in_files(tmp_path / "data", MARKER)


@pytest.mark.slow
async def test_killing_the_node_again_and_again_loses_nothing_and_the_rotation_ends(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("SEALANE_KILL_SEED", "11"))
    acknowledged = 0
    node = NodeProcess(tmp_path / "data", SMALL)
    try:
        for life in range(ROUNDS):
            node.start()
            async with sealane.connect(node.url) as lane:
                if life == 0:
                    await lane.publish_many("orders", [payload(number) for number in range(5_000)])
                    acknowledged = 5_000
                kill = asyncio.get_running_loop().call_later(chance.uniform(0.0, 0.8), node.kill)
                rotations = asyncio.create_task(keep_rotating(lane, chance))
                # A publish whose answer the kill has cut off may be stored or not: it is sent again by its id.
                with suppress(sealane.SealaneError, TimeoutError):
                    async with asyncio.timeout(1.0):
                        for number in count(acknowledged):
                            await lane.publish("orders", payload(number), id=id_of(number))
                            acknowledged = number + 1
                rotations.cancel()
                kill.cancel()
                node.kill()
        node.start()
        async with sealane.connect(node.url) as lane:
            await resealed(lane)
            found: set[int] = set()
            async with asyncio.timeout(DEADLINE_SECONDS):
                async for message in lane.consume("orders", "judge"):
                    found.add(number_of(message.payload))
                    await message.ack()
                    if len(found) >= acknowledged:
                        break
            assert set(range(acknowledged)) <= found | {acknowledged}
        node.stop()
        used, left = keys_in_use(tmp_path / "data")
        assert used <= left
        assert len(left) == 2
    finally:
        node.kill()


async def keep_rotating(lane: sealane.Lane, chance: random.Random) -> None:
    with suppress(sealane.SealaneError):
        while True:
            if chance.random() < 0.3:
                await lane.administer("key.rotate_master")
            else:
                await lane.administer("key.rotate", all=True)
            await asyncio.sleep(chance.uniform(0.0, 0.3))


def id_of(number: int) -> str:
    return f"00000000-0000-7000-8000-{number:012d}"


async def test_ctrl_c_ends_the_waiting_and_not_the_work(tmp_path: Path) -> None:
    settings = {**SMALL, "storage.compaction_bytes_per_second_max": 20_000}
    with NodeProcess(tmp_path / "data", settings) as node:
        async with sealane.connect(node.url) as lane:
            await lane.publish_many("orders", [payload(number) for number in range(500)])
            command = ("-m", "sealane", "key", "rotate", "--domain", "default", "--url", node.url)
            pipe = asyncio.subprocess.PIPE
            rotating = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not (await lane.administer("key.status"))["bytes_total"]:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.02)
                rotating.send_signal(signal.SIGINT)
                _, said = await rotating.communicate()
            assert rotating.returncode == 130
            assert b"goes on in the background" in said
            assert (await lane.administer("key.status"))["resealing"] is True
