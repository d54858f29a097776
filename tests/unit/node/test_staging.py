"""Staging in a node: what happens between the commits of a publish, and to parts that nobody publishes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

import sealane
from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine import Append, Opened, PartitionKey
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.engine.local.files import DiskFiles
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageError, StorageFull
from sealane.node import Node, NodeSettings, StagingSettings
from sealane.node.staging.logs import STAGED
from sealane.node.surroundings import Surroundings, of_this_machine, wall_clock_us
from sealane.prompt import Prompt
from tests.staged import batch_of, part_of, stage_part, stored
from tests.unit.node.mortal_engine import MortalEngine, node_on
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node, until

SMALL_STEPS = NodeSettings(staging=StagingSettings(step_bytes=500))


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


async def stage_all(lane: Lane, attempt: str) -> list[tuple[bytes, int]]:
    """Messages for two domains, in parts that are for both: 0 to 119 for orders, 0 to 39 for invoices."""
    parts = []
    for part in range(2):
        name = f"{attempt} {part}"
        for number in range(8):
            first = 60 * part + 15 * (number // 2)
            batch = batch_of(lane, name, number, numbers(first, first + 15), key=b"k")
            topic = "orders"
            if number % 2:
                first = 20 * part + 5 * (number // 2)
                batch, topic = batch_of(lane, name, number, numbers(first, first + 5)), "shop/invoices"
            await lane.stage(topic, batch)
        parts.append((part_of(name), 8))
    return parts


async def all_stored(lane: Lane) -> bool:
    return await stored(lane, "orders") == numbers(0, 120) and await stored(lane, "shop/invoices") == numbers(0, 40)


async def commits_of_a_publish() -> int:
    engine = MortalEngine()
    async with node_on(engine, SMALL_STEPS) as (_, lane):
        parts = await stage_all(lane, "first")
        before = engine.commits
        await lane.publish_staged("job", parts)
        return engine.commits - before


@pytest.mark.parametrize("epoch", [None, 4])
@pytest.mark.parametrize("staged_again", [False, True])
async def test_a_node_that_dies_between_any_two_commits_has_published_each_message_once(
    epoch: int | None, staged_again: bool
) -> None:
    commits = await commits_of_a_publish()
    assert commits > 8
    outcomes = []
    for lives in range(commits):
        engine = MortalEngine()
        async with node_on(engine, SMALL_STEPS) as (_, lane):
            await lane.create_topic("orders", partitions=2)
            parts = await stage_all(lane, "first")
            engine.lives = lives
            with pytest.raises(StorageError):
                await lane.publish_staged("job", parts, epoch=epoch)
        engine.revive()
        async with node_on(engine, SMALL_STEPS) as (node, lane):
            if staged_again:
                parts = await stage_all(lane, "second")
            async with asyncio.timeout(DEADLINE_SECONDS):
                outcomes.append(await lane.publish_staged("job", parts, epoch=epoch))
                assert await all_stored(lane), f"after {lives} commits"
                assert await lane.publish_staged("job", [], epoch=epoch) is False
            # Of what was staged twice, and not decided the first time, the first parts wait for their end.
            assert node.staging.staged_messages == (160 if staged_again and not lives else 0)
    # It is decided by its first commit: from then on the next start completes it.
    assert outcomes == [True] + (commits - 1) * [False]


async def test_a_restart_completes_what_was_decided_though_nobody_asks() -> None:
    engine = MortalEngine()
    async with node_on(engine, SMALL_STEPS) as (_, lane):
        parts = await stage_all(lane, "first")
        engine.lives = 3
        with pytest.raises(StorageError):
            await lane.publish_staged("job", parts)
    engine.revive()
    async with node_on(engine, SMALL_STEPS) as (node, lane):
        await until(lambda: node.staging.staged_messages == 0)
        assert await all_stored(lane)


async def test_a_node_that_dies_again_and_again_comes_to_the_end() -> None:
    engine = MortalEngine()
    async with node_on(engine, SMALL_STEPS) as (_, lane):
        parts = await stage_all(lane, "first")
        engine.lives = 1
        with pytest.raises(StorageError):
            await lane.publish_staged("job", parts)
    lives = 0
    while True:
        engine.revive()
        engine.lives = 1
        lives += 1
        async with node_on(engine, SMALL_STEPS) as (node, lane):
            await until(lambda: engine.died.is_set() or node.staging.staged_messages == 0)
            if node.staging.staged_messages == 0:
                break
    assert lives > 5
    engine.revive()
    async with node_on(engine, SMALL_STEPS) as (_, lane):
        assert await all_stored(lane)
        assert await lane.publish_staged("job", []) is False


class Refusing(MemoryEngine):
    """Takes a commit and says later that there was no room for it, once in a while."""

    every: int | None = None
    _count = 0

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        self._count += 1
        if self.every is None or self._count % self.every:
            return super().commit(appends)
        refused: Prompt[None] = Prompt()
        asyncio.get_running_loop().call_soon(refused.set_exception, StorageFull(100, 100))
        return refused


async def until_taken(work: Awaitable[object], again: Lane, parts: list[tuple[bytes, int]]) -> None:
    try:
        await work
    except StorageError:
        await asyncio.sleep(0)
        await until_taken(again.publish_staged("job", parts), again, parts)


@pytest.mark.parametrize("every", [2, 3, 4, 5])
async def test_a_disk_that_is_full_now_and_then_delays_it_and_repeats_nothing(every: int) -> None:
    moment = iter(range(1_700_000_000_000_000, 1 << 62))
    engine = Refusing(lambda: next(moment))
    node = await Node.open(engine, Surroundings(lambda: next(moment), lambda count: bytes(count)), SMALL_STEPS)
    async with in_process(node) as lane:
        parts = await stage_all(lane, "first")
        engine.every = every
        async with asyncio.timeout(DEADLINE_SECONDS):
            await until_taken(lane.publish_staged("job", parts), lane, parts)
        engine.every = None
        assert await all_stored(lane)
        assert await lane.publish_staged("job", []) is False
    await node.close()


class SlowToOpen(Refusing):
    """Is read again only when a test says so: until then memory is ahead of what is stored."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.ready = asyncio.Event()
        self.ready.set()

    async def open(self, partition: PartitionKey, *, sealed: bool = True) -> Opened:
        await self.ready.wait()
        return await super().open(partition, sealed=sealed)


@pytest.mark.parametrize("step_bytes", [500, 1 << 20])
async def test_a_publish_whose_commit_failed_is_neither_decided_nor_done(step_bytes: int) -> None:
    moment = iter(range(1_700_000_000_000_000, 1 << 62))
    engine = SlowToOpen(lambda: next(moment))
    settings = NodeSettings(staging=StagingSettings(step_bytes=step_bytes))
    node = await Node.open(engine, Surroundings(lambda: next(moment), lambda count: bytes(count)), settings)
    async with in_process(node) as lane:
        parts = await stage_all(lane, "first")
        await lane.create_topic("orders")
        await lane.create_topic("shop/invoices")
        await lane.publish_staged("another job", [])
        engine.every = 1
        engine.ready.clear()
        with pytest.raises(StorageFull):
            await lane.publish_staged("job", parts)
        engine.every = None
        for again in (parts, []):
            # Memory says that it was decided or done; storage has not been asked yet.
            with pytest.raises(StorageError):
                await lane.publish_staged("job", again)
        engine.ready.set()
        await until(lambda: all(owner.error is None for topic in node.topics.values() for owner in topic.owners))
        assert await stored(lane, "orders") == []
        assert await lane.publish_staged("job", parts) is True
        assert await all_stored(lane)
    await node.close()


# --- deleted meanwhile ------------------------------------------------------------------------------------------------


async def stuck_publish(lane: Lane) -> asyncio.Task[bool]:
    """A publish that is decided and cannot go on: its messages for orders all have one key, and one partition."""
    await lane.create_topic("orders", partitions=2, messages_max=70)
    async with lane.consume("orders", "s"):
        pass
    parts = await stage_all(lane, "first")
    publishing = asyncio.create_task(lane.publish_staged("job", parts))
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await lane.describe_topic("orders")).subscriptions[0].depth < 70:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.002)
    assert not publishing.done()
    return publishing


@pytest.mark.parametrize("made_again", [False, True])
async def test_a_topic_deleted_between_two_steps_takes_its_messages_along(made_again: bool) -> None:
    async with running_node(SMALL_STEPS) as running:
        lane = running.lane
        publishing = await stuck_publish(lane)
        await lane.delete_topic("orders")
        if made_again:
            await lane.create_topic("orders")
        assert await asyncio.wait_for(publishing, DEADLINE_SECONDS) is True
        assert await stored(lane, "shop/invoices") == numbers(0, 40)
        assert (await stored(lane, "orders") if made_again else []) == []
        assert running.node.staging.staged_messages == 0
        assert await lane.publish_staged("job", []) is False


@pytest.mark.parametrize("domain", ["default", "shop"])
async def test_a_domain_destroyed_between_two_steps_takes_what_is_staged_for_it_along(
    tmp_path: Path, domain: str
) -> None:
    async with sealane.embedded(tmp_path, settings=SMALL_STEPS) as lane:
        publishing = await stuck_publish(lane)
        await lane.administer("key.destroy", domain=domain, confirmed=domain)
        if domain == "shop":
            await lane.configure_topic("orders", messages_max=1_000)
        assert await asyncio.wait_for(publishing, DEADLINE_SECONDS) is True
        if domain == "shop":
            assert await stored(lane, "orders") == numbers(0, 120)
            assert await lane.topics() == ["default/orders"]
        else:
            assert await stored(lane, "shop/invoices") == numbers(0, 40)
            assert await lane.topics() == ["shop/invoices"]
        assert await lane.publish_staged("next job", [await stage_part(lane, "orders", "again", [[b"a"]])]) is True


async def test_parts_of_a_publish_that_is_under_way_are_left_alone() -> None:
    async with running_node(SMALL_STEPS) as running:
        lane = running.lane
        publishing = await stuck_publish(lane)
        await lane.drop_staged([part_of("first 0"), part_of("first 1")])
        with pytest.raises(sealane.InvalidBatch, match="too late"):
            await lane.stage("orders", batch_of(lane, "first 0", 8, [b"late"]))
        running.clock.pass_seconds(30 * 24 * 3600)
        await running.node.staging.tidy()
        await running.node._retention.apply()
        await lane.configure_topic("orders", messages_max=1_000)
        assert await asyncio.wait_for(publishing, DEADLINE_SECONDS) is True
        assert await all_stored(lane)


async def test_a_caller_who_gives_up_leaves_the_publish_to_itself() -> None:
    async with running_node(SMALL_STEPS) as running:
        lane = running.lane
        publishing = await stuck_publish(lane)
        publishing.cancel()
        await asyncio.wait([publishing])
        again = asyncio.create_task(lane.publish_staged("job", []))
        await lane.configure_topic("orders", messages_max=1_000)
        assert await asyncio.wait_for(again, DEADLINE_SECONDS) is False
        assert await all_stored(lane)


# --- what nobody publishes --------------------------------------------------------------------------------------------


async def test_parts_are_forgotten_after_a_day_without_a_change() -> None:
    async with running_node() as running:
        lane, staging = running.lane, running.node.staging
        old = await stage_part(lane, "orders", "old", [[b"a"]])
        grown = await stage_part(lane, "orders", "grown", [[b"b"]])
        spread = await stage_part(lane, "orders", "spread", [[b"d"]])
        running.clock.pass_seconds(24 * 3600 - 1)
        await lane.stage("orders", batch_of(lane, "grown", 1, [b"c"]))
        await lane.stage("shop/invoices", batch_of(lane, "spread", 1, [b"e"]))
        running.clock.pass_seconds(2)
        await running.node._retention.apply()
        assert staging.staged_messages == 4
        with pytest.raises(sealane.StagedPartLost, match="staged too long ago"):
            await lane.publish_staged("job", [old])
        assert await lane.publish_staged("job", [(grown[0], 2), (spread[0], 2)]) is True
        assert await stored(lane, "orders") == [b"b", b"c", b"d"]


async def test_what_is_published_dropped_or_expired_takes_no_room_any_more() -> None:
    async with running_node() as running:
        lane, node = running.lane, running.node
        kept = await stage_part(lane, "orders", "kept", [[b"x" * 1_000]])
        [owner] = node.topic(f"default/{STAGED}").owners
        used = node.engine.usage().bytes_used
        for round_ in range(10):
            published = await stage_part(lane, "orders", f"published {round_}", [[b"x" * 100_000]])
            dropped = await stage_part(lane, "orders", f"dropped {round_}", [[b"x" * 100_000]])
            await lane.publish_staged(f"job {round_}", [published])
            await lane.drop_staged([dropped[0]])
        assert owner.core.start == 0  # The oldest part is there still.
        await lane.publish_staged("last job", [kept])
        await until(lambda: owner.core.start == owner.core.end)
        assert node.staging.staged_messages == node.staging.staged_bytes == 0
        # What was published is in its topic; what was staged is nowhere but in the journal.
        assert node.engine.usage().bytes_used - used < 10 * 100_000 + 50_000


async def test_retention_does_not_touch_what_is_staged() -> None:
    async with running_node() as running:
        part = await stage_part(running.lane, "orders", "p", [[b"a"], [b"b"]])
        running.clock.pass_seconds(3600)
        await running.node._retention.apply()
        assert await running.lane.publish_staged("job", [part]) is True
        assert await stored(running.lane, "orders") == [b"a", b"b"]


async def test_a_snapshot_of_the_journal_carries_what_is_staged_and_done() -> None:
    engine = MortalEngine()
    settings = NodeSettings(staging=StagingSettings(step_bytes=500), snapshot_journal_bytes=1)
    async with node_on(engine, settings) as (_, lane):
        parts = await stage_all(lane, "first")
        await lane.publish_staged("query", [], epoch=3)
        engine.lives = 9
        with pytest.raises(StorageError):
            await lane.publish_staged("job", parts)
    engine.revive()
    async with node_on(engine, settings) as (_, lane):
        assert await lane.publish_staged("job", parts) is False
        assert await all_stored(lane)
        assert await lane.publish_staged("query", [], epoch=3) is False


async def test_a_directory_does_not_grow_with_what_was_staged(tmp_path: Path) -> None:
    storage = StorageSettings(
        segment_bytes=128 * 1024, segment_bytes_first=64 * 1024, compaction_segments_min=2, compaction_segments_max=2
    )
    engine = await LocalEngine.start(DiskFiles(tmp_path), settings=storage, clock=wall_clock_us, entropy=os.urandom)
    node = await Node.open(engine, of_this_machine())
    async with in_process(node) as lane:
        staged_bytes = 0
        for round_ in range(60):
            part = await stage_part(lane, "orders", f"part {round_}", [[os.urandom(50_000)], [os.urandom(50_000)]])
            staged_bytes += node.staging.staged_bytes
            await lane.drop_staged([part[0]])
        assert staged_bytes > 6_000_000
        # A few segments wait to be compacted; the rest is gone, as nothing of it is needed.
        await until(lambda: engine.usage().bytes_used < 2_000_000)
    await node.close()
