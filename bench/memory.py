"""The memory of a node: with nothing to do, with messages stored, and over time under a steady load."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import sealane
from bench import resident
from bench.clients.order import TOPIC, Order
from bench.processes import together
from bench.resident import Resident
from bench.wire_client import command
from sealane.testing.node_process import NodeProcess

FILL_BATCH = 5_000
PACED_BATCH = 1_000
STARTING_SECONDS = 60.0
"""What clients may take beside the load itself: to start, and to end."""


def idle(directory: Path) -> float:
    """MB resident of a node that has a topic and nobody to serve."""
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        return resident.settled(node.pid).resident_mb


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A node right after so many messages were published, and after they were consumed too."""

    published: Resident
    consumed: Resident

    @property
    def resident_mb(self) -> float:
        return max(self.published.resident_mb, self.consumed.resident_mb)


def stored(directory: Path, *, messages: int) -> float:
    """MB resident with so many messages of 100 B stored: before or after they are consumed, whichever is more."""
    return stored_in_parts(directory, messages=messages).resident_mb


def stored_in_parts(directory: Path, *, messages: int) -> StoredMemory:
    """The same, with both readings and what of them is private."""
    with NodeProcess(directory / "data") as node:
        order = Order(node.url, messages // FILL_BATCH * FILL_BATCH, FILL_BATCH)
        together([command("publish_many", order)])
        published = resident.settled(node.pid)
        together([command("consume_batches", order)])
        return StoredMemory(published, resident.settled(node.pid))


def over_time(directory: Path, *, seconds: int, per_second: int) -> list[tuple[float, float]]:
    """A reading each second, as (seconds since the start, MB resident), under so many messages a second.

    Batches of 1,000 come at an even pace and are consumed and acknowledged meanwhile. Raises `TooSlow` if the node did
    not keep the pace: its memory would be that of another load.
    """
    readings: list[tuple[float, float]] = []
    with NodeProcess(directory / "data") as node, ThreadPoolExecutor(max_workers=1) as thread:
        order = Order(node.url, seconds * per_second, PACED_BATCH, per_second=per_second // PACED_BATCH)
        commands = [command("consume_batches", order), command("publish_many_at_a_pace", order)]
        load = thread.submit(together, commands, seconds + STARTING_SECONDS)
        begun = time.monotonic()
        while not load.done():
            readings.append((time.monotonic() - begun, resident.of(node.pid).resident_mb))
            time.sleep(1.0)
        consumed, produced = load.result()
        # The load begins when both clients are there, a moment after the node.
        first = min(consumed["begun_ns"], produced["begun_ns"]) / 1e9 - begun
        taken = (consumed["ended_ns"] - produced["begun_ns"]) / 1e9
    if taken > seconds * 1.1 + 1:
        raise TooSlow(f"{per_second:,} messages a second for {seconds} s took {taken:.1f} s")
    return [(moment - first, megabytes) for moment, megabytes in readings if first <= moment <= first + seconds]


class TooSlow(RuntimeError):
    """The node did not keep the pace that it was to be measured at."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How memory goes on once the load has been there for a while: the second half of the readings."""

    mb_per_minute: float
    """The slope by least squares."""
    growth_mb: float
    """From the middle's level to the end's: medians over a tenth of all readings each."""
    level_mb: float

    FLAT_SHARE_MAX = 0.02

    @property
    def flat(self) -> bool:
        """Whether it grew by less than a fiftieth in half of the time: less than allocators come and go by."""
        return self.growth_mb < self.level_mb * self.FLAT_SHARE_MAX


def trend(readings: Sequence[tuple[float, float]]) -> Trend:
    """Needs four readings at least."""
    later = readings[len(readings) // 2 :]
    moments, levels = zip(*later, strict=True)
    slope, _ = statistics.linear_regression(moments, levels)
    few = max(2, len(readings) // 10)
    middle, end = statistics.median(levels[:few]), statistics.median(levels[-few:])
    return Trend(slope * 60, end - middle, middle)
