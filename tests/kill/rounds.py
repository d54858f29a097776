"""The rounds: clients at work, a node that dies at random moments, and the judgement at the end."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import sealane
from tests.kill.history import Follower, History, Kept
from tests.kill.node import LOOK_SECONDS, Node
from tests.kill.oracles import Shape, granted_after_ack, violations
from tests.kill.recording import full_name

ROOT = Path(__file__).parents[2]
FLOW_SECONDS = 60.0
"""A subscription that is silent for so long after a start has failed. That it takes 2 s at most is a claim about time,
and is looked at in the report."""
DRAIN_SECONDS = 180.0
COMPACTION_LOOKS = 500
ROLES = ("producers", "consumers-0", "consumers-1")

TOPICS = {"work": 2, "keys": 2, "once": 1, "fragile": 1, "done": 1}
SUBSCRIPTIONS = (
    ("work", "ordered"),
    ("work", "workers"),
    ("work", "movers"),
    ("keys", "keyed"),
    ("once", "readers"),
    ("fragile", "careful"),
)
DEAD = "fragile.careful.dead"


SHAPE = Shape(
    subscriptions=tuple((full_name(topic), subscription) for topic, subscription in SUBSCRIPTIONS),
    in_order=((full_name("work"), "ordered"), (full_name("once"), "readers")),
    by_key=((full_name("keys"), "keyed"),),
    moves=((full_name("work"), "movers", full_name("done")),),
    dead_letters={(full_name("fragile"), "careful"): full_name(DEAD)},
)


@dataclass
class Report:
    """How it went."""

    seed: int
    deaths: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    acknowledged: int = 0
    granted: int = 0
    confirmed: int = 0
    unsure: int = 0
    dead_letters: int = 0
    loops_begun_again: list[str] = field(default_factory=list)
    flow_seconds: list[float] = field(default_factory=list)
    """Of each life and subscription: from when the doors answered to its first message."""

    def lines(self) -> list[str]:
        took = sorted(self.flow_seconds) or [0.0]
        late = sum(seconds > 2 for seconds in took)
        deaths = ", ".join(f"{count} {how}" for how, count in sorted(self.deaths.items()))
        return [
            f"seed {self.seed}: {sum(self.deaths.values())} rounds ({deaths})",
            f"{self.acknowledged:,} messages acknowledged, {self.unsure:,} unsure; {self.granted:,} grants, "
            f"{self.confirmed:,} confirmed acks, {self.dead_letters:,} dead letters, "
            f"{len(self.loops_begun_again)} loops begun again",
            f"flowing again after: p50 {statistics.median(took):.3f} s, p95 {took[int(len(took) * 0.95)]:.3f} s, "
            f"max {took[-1]:.3f} s; {late} of {len(took)} took more than 2 s",
            *(f"loop begun again: {each}" for each in self.loops_begun_again[:5]),
            f"{len(self.violations)} violations",
            *self.violations[:50],
        ]


class Killing:
    """One run in a directory of its own, from a seed."""

    def __init__(self, directory: Path, seed: int, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._say = say
        self._node = Node(directory)
        self._records = {role: directory / f"{role}.jsonl" for role in ROLES}
        self._follower = Follower(self._records.values())
        self._clients: dict[str, Process] = {}
        self.report = Report(seed)

    async def run(self, rounds: int) -> Report:
        async with AsyncExitStack() as cleaning:
            cleaning.push_async_callback(self._node.kill)
            cleaning.push_async_callback(self._kill_clients)
            await self._node.start()
            await self._create_topics()
            for role in ROLES:
                await self._start_client(role)
            await self._flowing()
            for number in range(rounds):
                await self._die()
                await self._flowing()
                # What must never happen is looked for along the way too, while the reasons are fresh.
                if found := list(granted_after_ack(self._follower.history)):
                    self.report.violations += found
                    return self._finish()
                self._say(f"round {number + 1} of {rounds}: {len(self._follower.history.receipts):,} acknowledged")
            await self._stop_client("producers")
            log = await self._drained()
            for role in ("consumers-0", "consumers-1"):
                await self._stop_client(role)
        self._follower.follow()
        self.report.violations = violations(self._follower.history, log, SHAPE)
        self.report.dead_letters = len(log.get(full_name(DEAD), ()))
        return self._finish()

    def _finish(self) -> Report:
        history, report = self._follower.history, self.report
        report.acknowledged, report.unsure = len(history.receipts), len(history.unsure)
        report.granted, report.confirmed = len(history.grants), len(history.acked)
        report.loops_begun_again = history.ended
        report.flow_seconds = flow_seconds(history, self._node.ready_ns[1:])
        return report

    # --- deaths -------------------------------------------------------------------------------------------------------

    async def _die(self) -> None:
        kinds = {"at work": 4, "compacting": 3, "draining": 2, "stopped in order": 1, "starting": 2}
        [how] = self._chance.choices(list(kinds), list(kinds.values()))
        self.report.deaths[how] += 1
        await asyncio.sleep(self._chance.uniform(0, self._chance.choice([0.2, 1.0])))  # Any moment will do.
        if how == "compacting":
            await self._until_it_compacts()
            await asyncio.sleep(self._chance.uniform(0, 0.05))
        elif how in ("draining", "stopped in order"):
            self._node.terminate()
            if how == "draining":
                await asyncio.sleep(self._chance.uniform(0, 0.3))
            else:
                code = await self._node.ended()
                assert code == 0, f"the node ended with {code} when it was asked to stop"
        await self._node.kill()
        if how == "starting":
            for _ in range(self._chance.choice([1, 1, 2])):
                await self._node.begin()
                await asyncio.sleep(self._chance.uniform(0, 1.2))
                await self._node.kill()
        await self._node.start()

    async def _until_it_compacts(self) -> None:
        """Or until it seems that it will not, for now."""
        for _ in range(COMPACTION_LOOKS):
            if self._node.compacts():
                return
            await asyncio.sleep(LOOK_SECONDS)

    # --- clients ------------------------------------------------------------------------------------------------------

    async def _create_topics(self) -> None:
        async with sealane.connect(self._node.url) as lane:
            for topic, partitions in TOPICS.items():
                await lane.create_topic(topic, partitions=partitions)

    async def _start_client(self, role: str) -> None:
        with (self._directory / f"{role}.err").open("wb") as errors:
            self._clients[role] = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.kill.client",
                role,
                self._node.url,
                str(self._records[role]),
                str(self.report.seed),
                stdout=errors,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            )

    def _check_clients(self) -> None:
        for role, process in self._clients.items():
            if process.returncode is not None:
                said = (self._directory / f"{role}.err").read_text(errors="replace")
                raise AssertionError(f"{role} ended with {process.returncode}: {said[-4000:]}")

    async def _stop_client(self, role: str) -> None:
        self._check_clients()
        process = self._clients.pop(role)
        process.terminate()
        async with asyncio.timeout(DRAIN_SECONDS):
            code = await process.wait()
        said = (self._directory / f"{role}.err").read_text(errors="replace")
        assert code == 0, f"{role} ended with {code}: {said[-4000:]}"

    async def _kill_clients(self) -> None:
        for process in self._clients.values():
            if process.returncode is None:
                process.kill()
            await process.wait()

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def _flowing(self) -> None:
        """Until every subscription has been handed a message of this life of the node."""
        since_ns, stop = self._node.ready_ns[-1], time.monotonic() + FLOW_SECONDS
        while True:
            self._follower.follow()
            last = self._follower.last_grant_ns
            silent = [name for _, name in SUBSCRIPTIONS if last.get(name, 0) <= since_ns]
            if not silent:
                return
            self._check_clients()
            assert time.monotonic() < stop, f"silent for {FLOW_SECONDS:g} s after a start: {', '.join(silent)}"
            await asyncio.sleep(0.02)

    async def _drained(self) -> dict[str, list[Kept]]:
        """Wait until nothing is left to do on any subscription, then read everything."""
        async with sealane.connect(self._node.url) as lane:
            stop = time.monotonic() + DRAIN_SECONDS
            while left := await self._left(lane):
                self._check_clients()
                assert time.monotonic() < stop, f"not done after {DRAIN_SECONDS:g} s: {left}"
                await asyncio.sleep(0.05)
            topics = [*TOPICS, DEAD] if full_name(DEAD) in await lane.topics() else [*TOPICS]
            return {full_name(topic): await everything(lane, topic) for topic in topics}

    async def _left(self, lane: sealane.Lane) -> dict[str, int]:
        left = {}
        for topic in TOPICS:
            for subscription in (await lane.describe_topic(topic)).subscriptions:
                if subscription.depth or subscription.dying:
                    left[f"{topic}/{subscription.name}"] = subscription.depth
        return left


async def everything(lane: sealane.Lane, topic: str) -> list[Kept]:
    """All that is stored in the topic, by partition and offset."""
    found = []
    for partition in (await lane.describe_topic(topic)).partitions:
        offset = partition.start
        while batches := await lane.browse(topic, partition.partition, offset):
            for stored in batches:
                rows = zip(stored.batch.ids(), stored.batch.payloads(), strict=True)
                for place, (identity, payload) in enumerate(rows, stored.base):
                    if place >= offset:
                        found.append(Kept(partition.partition, place, identity.hex(), payload.decode()))
            offset = batches[-1].stop
    return found


def flow_seconds(history: History, ready_ns: list[int]) -> list[float]:
    """How long each subscription took, each time that the node was back, until it was handed something."""
    took = []
    for since_ns in ready_ns:
        for topic, subscription in SHAPE.subscriptions:
            times = (
                grant.time_ns
                for grant in history.grants
                if (grant.topic, grant.subscription) == (topic, subscription) and grant.time_ns > since_ns
            )
            if (first := min(times, default=None)) is not None:
                took.append((first - since_ns) / 1e9)
    return took
