"""Floods, slow senders and those who go in the middle of a frame: at every door of a real node with a neighbour.

The neighbour loses nothing and has no error; afterwards the node has the memory and the descriptors that it had before,
and the door still answers. How long the neighbour's publishes take meanwhile is printed, and decides nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealane.testing.node_process import NodeProcess
from tests.integration.hostile.attacked import DOORS, AttackedDoor, answer, cut_off, flood, trickle
from tests.integration.hostile.neighbour import Neighbour

OPENS = 10_000
AT_ONCE = 200
SENDERS = 100
TURNS = 30
CUTS = 500
CALM = 40
"""Messages of the neighbour before the attack."""
MEMORY_MARGIN_BYTES = 48 << 20
"""By which the node may be larger than before: what it keeps of nobody is nothing, what an allocator keeps is some."""
DESCRIPTORS_MARGIN = 8
"""Files of the log that it may have opened meanwhile."""
SETTLE_SECONDS = 60.0
ENABLED = {"enabled": "true", "port": 0}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    others = {f"doors.{name}.{key}": value for name in ("grpc", "frames", "cipher") for key, value in ENABLED.items()}
    with NodeProcess(tmp_path_factory.mktemp("hostile") / "data", others) as started:
        for door in DOORS:
            flood(started.doors[door.door], door.begin, opens=AT_ONCE, at_once=AT_ONCE)
        yield started


@pytest.fixture(params=DOORS, ids=lambda door: str(door.name))
def door(request: pytest.FixtureRequest) -> AttackedDoor:
    found: AttackedDoor = request.param
    return found


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


async def unharmed(node: NodeProcess, door: AttackedDoor, attack: Callable[[Neighbour], object]) -> None:
    """Attack from a thread while a neighbour works; then look at what is left of it."""
    async with Neighbour(node.url) as neighbour:
        await neighbour.passed(CALM)
        memory, open_files = resident_bytes(node.pid), descriptors(node.pid)
        calm = len(neighbour.latencies)
        await asyncio.to_thread(attack, neighbour)
        before, meanwhile = (neighbour.quantiles_ms(which) for which in (slice(calm), slice(calm, None)))
        print(f"{door.name}: publishes take {before} before, {meanwhile} meanwhile")
        await neighbour.passed(10)
        await settled(lambda: descriptors(node.pid) - open_files, DESCRIPTORS_MARGIN, "descriptors")
        await settled(lambda: resident_bytes(node.pid) - memory, MEMORY_MARGIN_BYTES, "bytes of memory")
        assert await asyncio.to_thread(answer, node.doors[door.door], door.sound)


async def settled(grown: Callable[[], int], margin: int, what: str) -> None:
    """Return when the node has no more than it had before, but for the margin."""
    stop = time.monotonic() + SETTLE_SECONDS
    while (more := grown()) > margin:
        assert time.monotonic() < stop, f"the node has {more:,} {what} more than before"
        await asyncio.sleep(0.02)


async def test_a_flood_of_connections_leaves_nothing_behind(node: NodeProcess, door: AttackedDoor) -> None:
    def attack(neighbour: Neighbour) -> None:
        flood(node.doors[door.door], door.begin + door.half, opens=OPENS, at_once=AT_ONCE)

    await unharmed(node, door, attack)


async def test_slow_senders_keep_nobody_waiting(node: NodeProcess, door: AttackedDoor) -> None:
    loop = asyncio.get_running_loop()

    def attack(neighbour: Neighbour) -> None:
        def next_turn(turn: int) -> bool:
            # A byte whenever the neighbour has got on: however slow the machine is, both of them take part.
            asyncio.run_coroutine_threadsafe(neighbour.passed(1), loop).result()
            return turn < TURNS

        assert trickle(node.doors[door.door], door.begin + door.half, senders=SENDERS, go_on=next_turn) == TURNS

    await unharmed(node, door, attack)


async def test_those_who_go_in_the_middle_of_a_frame_leave_nothing_behind(
    node: NodeProcess, door: AttackedDoor
) -> None:
    def attack(neighbour: Neighbour) -> None:
        cut_off(node.doors[door.door], door.begin, door.half, times=CUTS)

    await unharmed(node, door, attack)
