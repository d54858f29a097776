"""A crash in whatever runs by itself is logged and counted, and then it goes on, or the node stops."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.partition import Partition
from sealane.delivery.subscription import Subscription
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compacting import Compacting
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.housekeeping import Housekeeping
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageFailed
from sealane.log import Event
from sealane.node import Node, NodeSettings
from sealane.node.burial import Undertaker
from sealane.node.dispatch import Dispatcher
from sealane.node.owner import PartitionOwner
from sealane.node.registry import TopicRegistry
from sealane.node.retention import Retention
from sealane.node.status import health
from sealane.node.supervision import RESTART_SECONDS_MAX, RESTART_SECONDS_MIN, Backoff, Supervisor
from sealane.node.surroundings import Surroundings
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node, until


class Planted(Exception):
    """What nobody expects."""


def clock() -> int:
    return time.time_ns() // 1_000


def crash_once(monkeypatch: pytest.MonkeyPatch, target: type, name: str) -> None:
    """The next call of this method crashes; those after it work."""
    original = getattr(target, name)

    def crashing(*args, **kwargs):
        monkeypatch.setattr(target, name, original)
        raise Planted(name)

    monkeypatch.setattr(target, name, crashing)


def crash_always(monkeypatch: pytest.MonkeyPatch, target: type, name: str) -> None:
    def crashing(*args, **kwargs):
        raise Planted(name)

    monkeypatch.setattr(target, name, crashing)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    settings = NodeSettings(retention_check_seconds=0.01)
    node = await Node.open(MemoryEngine(clock), Surroundings(clock, os.urandom), settings)
    yield node
    await node.close()


@pytest.fixture
async def lane(node: Node) -> AsyncIterator[Lane]:
    async with in_process(node) as lane:
        yield lane


def crash_was_logged(caplog: pytest.LogCaptureFixture, task: str) -> bool:
    for record in caplog.records:
        event: Any = record.msg
        if record.levelno == logging.ERROR and isinstance(event, Event) and event.sentence == "a task crashed":
            error = record.exc_info[1] if record.exc_info else None
            if event.fields["task"] == task and isinstance(error, Planted):
                return True
    return False


async def take(lane: Lane, count: int, topic: str = "orders") -> list[bytes]:
    taken: list[bytes] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume(topic, subscription="billing"):
            taken.append(message.payload)
            await message.ack()
            if len(taken) == count:
                break
    return taken


# --- the supervisor itself --------------------------------------------------------------------------------------------


def test_pauses_double_up_to_their_limit_and_begin_anew_after_a_quiet_time() -> None:
    backoff = Backoff()
    pauses = [backoff.next_seconds(moment) for moment in itertools.repeat(0.0, 12)]

    assert pauses[:3] == [RESTART_SECONDS_MIN, 2 * RESTART_SECONDS_MIN, 4 * RESTART_SECONDS_MIN]
    assert pauses[-1] == RESTART_SECONDS_MAX
    assert backoff.next_seconds(2 * RESTART_SECONDS_MAX) == RESTART_SECONDS_MAX
    assert backoff.next_seconds(4 * RESTART_SECONDS_MAX + 0.1) == RESTART_SECONDS_MIN


async def test_work_that_crashes_is_called_again_until_it_returns(caplog) -> None:
    supervisor = Supervisor()
    calls = 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise Planted

    await supervisor.keep("digging", work, topic="default/orders")

    assert calls == 3
    assert supervisor.crashes == {"digging": 2}
    assert "topic=default/orders" in caplog.text
    assert crash_was_logged(caplog, "digging")


async def test_work_that_is_done_once_is_counted_when_it_crashes() -> None:
    supervisor = Supervisor()

    async def work() -> None:
        raise Planted

    supervisor.spawn("digging", work())
    await supervisor.finish()

    assert supervisor.crashes == {"digging": 1}


async def test_whoever_waits_for_the_node_to_stop_is_told_why_once() -> None:
    supervisor = Supervisor()
    waiting = asyncio.create_task(supervisor.failed())
    await asyncio.sleep(0)
    assert not waiting.done()

    first = Planted("first")
    supervisor.stop("commit", first)
    supervisor.stop("reload", Planted("second"))

    assert await waiting is first
    assert supervisor.failed_task == "commit"
    assert supervisor.crashes == {"commit": 1, "reload": 1}


# --- what goes on after a crash ---------------------------------------------------------------------------------------


async def test_retention_crashes_for_one_topic_and_goes_on(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.create_topic("brief", retention_seconds=0)
    crash_once(monkeypatch, Retention, "_trim")
    await until(lambda: node.supervisor.crashes["retention"] == 1)

    await lane.publish("brief", b"gone soon")

    await until(lambda: node.topic("brief").owners[0].core.start == 1)
    assert crash_was_logged(caplog, "retention")


async def test_retention_itself_is_started_again(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.create_topic("brief", retention_seconds=0)
    crash_once(monkeypatch, Retention, "apply")
    await until(lambda: node.supervisor.crashes["retention"] == 1)

    await lane.publish("brief", b"gone soon")

    await until(lambda: node.topic("brief").owners[0].core.start == 1)


async def test_a_dispatcher_that_crashes_serves_its_consumers_again(
    node: Node, lane: Lane, monkeypatch, caplog
) -> None:
    await lane.publish_many("orders", [b"1", b"2", b"3"])
    crash_once(monkeypatch, Dispatcher, "_parts")

    assert await take(lane, 3) == [b"1", b"2", b"3"]

    assert node.supervisor.crashes == {"dispatch": 1}
    assert crash_was_logged(caplog, "dispatch")


async def test_a_read_that_fails_is_no_crash_and_is_tried_again(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.publish_many("orders", [b"1", b"2", b"3"])
    original = Dispatcher._parts

    async def failing(*args):
        monkeypatch.setattr(Dispatcher, "_parts", original)
        raise OSError("the disk is slow today")

    monkeypatch.setattr(Dispatcher, "_parts", failing)

    assert await take(lane, 3) == [b"1", b"2", b"3"]

    assert not node.supervisor.crashes
    assert "delivering waits" in caplog.text


async def test_the_undertaker_moves_dead_letters_after_a_crash(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.publish("orders", b"poison")
    crash_once(monkeypatch, Undertaker, "_move")
    once = sealane.Retry("fixed", 0.0, attempts_max=1)
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", subscription="billing", retry=once):
            await message.nack(reason="poison")
            break

    await until(lambda: "default/orders.billing.dead" in node.topics)
    assert await take(lane, 1, "orders.billing.dead") == [b"poison"]
    assert node.supervisor.crashes == {"burial": 1}
    assert crash_was_logged(caplog, "burial")


async def test_a_timer_that_crashes_has_its_partition_read_again(monkeypatch, caplog) -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"later", delay=10)
        waiting = asyncio.create_task(take(running.lane, 1))
        core = running.node.topic("orders").owners[0].core
        await until(lambda: any(reader.parked for reader in core.subscriptions.values()))
        crash_once(monkeypatch, Subscription, "tick")
        running.clock.pass_seconds(11)

        assert await waiting == [b"later"]

        assert running.node.supervisor.crashes == {"timer": 1}
        assert crash_was_logged(caplog, "timer")
        assert not health(running.node).problems


@pytest.mark.parametrize("where", [(MemoryEngine, "commit"), (PartitionOwner, "append")])
async def test_a_flush_that_crashes_keeps_its_acks(where, node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.publish_many("orders", [b"1", b"2"])
    await node.subscribe(node.topic("orders"), "billing", SubscriptionConfig(), "earliest")
    crash_once(monkeypatch, *where)

    assert await take(lane, 2) == [b"1", b"2"]

    await until(lambda: node.supervisor.crashes["journal flush"] == 1 and not health(node).problems)
    assert crash_was_logged(caplog, "journal flush")
    await until(lambda: node.topic("orders").owners[0].core.subscription("billing").depth(2) == 0)


async def test_a_snapshot_that_crashes_leaves_a_longer_journal(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    object.__setattr__(node.settings, "snapshot_journal_bytes", 1)
    await lane.publish("orders", b"first", id=bytes(16))
    crash_once(monkeypatch, Partition, "snapshot")
    for number in range(1, 8):
        await lane.publish("orders", b"more", id=number.to_bytes(16, "big"))

    assert node.supervisor.crashes == {"snapshot": 1}
    assert crash_was_logged(caplog, "snapshot")


async def test_a_journal_that_cannot_be_trimmed_is_trimmed_by_the_next_snapshot(
    node: Node, lane: Lane, monkeypatch, caplog
) -> None:
    object.__setattr__(node.settings, "snapshot_journal_bytes", 1)
    object.__setattr__(node.settings, "retention_check_seconds", 3600)
    crash_once(monkeypatch, MemoryEngine, "trim")
    for number in range(20):
        await lane.publish("orders", b"more", id=number.to_bytes(16, "big"))

    await until(lambda: node.supervisor.crashes["journal trim"] == 1)
    assert crash_was_logged(caplog, "journal trim")
    key = node.topic("orders").owners[0].key
    await until(lambda: node.engine._partitions[key].journal_start > 0)  # type: ignore[attr-defined]


async def test_work_on_a_topic_that_fails_after_its_caller_has_gone_is_counted(node: Node, monkeypatch, caplog) -> None:
    going = asyncio.Event()

    async def crashing(*args):
        await going.wait()
        raise Planted

    monkeypatch.setattr(TopicRegistry, "_create", crashing)
    caller = asyncio.create_task(node._registry.get_or_create("orders"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    going.set()

    await until(lambda: node.supervisor.crashes["topic change"] == 1)
    assert crash_was_logged(caplog, "topic change")


# --- what stops the node ----------------------------------------------------------------------------------------------


async def expect_stopped(node: Node, lane: Lane, task: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert isinstance(await node.supervisor.failed(), Planted)
    assert node.supervisor.failed_task == task
    state = health(node)
    assert (state.live, state.ready) == (False, False)
    assert task in state.problems[0]
    with pytest.raises(StorageFailed):
        await lane.publish("orders", b"refused")


async def test_a_reload_that_crashes_stops_the_node(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.publish("orders", b"first")
    crash_always(monkeypatch, PartitionOwner, "take_unsure")
    node.topic("orders").owners[0].distrust("timer", Planted())

    await expect_stopped(node, lane, "reload")

    assert crash_was_logged(caplog, "reload")
    assert any(record.levelno == logging.CRITICAL for record in caplog.records)


async def test_a_commit_that_is_taken_and_not_applied_stops_the_node(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    crash_once(monkeypatch, Partition, "apply")

    with pytest.raises(Planted):
        await lane.publish("orders", b"second")

    await expect_stopped(node, lane, "commit")


async def test_a_commit_whose_end_is_not_heard_stops_the_node(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    crash_once(monkeypatch, Partition, "committed")
    await lane.publish("orders", b"second")

    await expect_stopped(node, lane, "commit")


# --- the local engine -------------------------------------------------------------------------------------------------


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Node]:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"),
        settings=StorageSettings(
            segment_bytes=4096,
            segment_bytes_first=4096,
            disk_free_bytes_min=0,
            compaction_segments_min=2,
            space_retry_seconds=0.01,
        ),
        clock=clock,
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )
    node = await Node.open(engine, Surroundings(clock, os.urandom))
    yield node
    await node.close()


async def fill_segments(lane: Lane, count: int) -> None:
    for _ in range(count):
        await lane.publish_many("orders", [bytes(500)] * 7)


async def test_housekeeping_that_crashes_is_done_again(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, Housekeeping, "_save_indexes")
        await fill_segments(lane, 2)

        await until(lambda: local.supervisor.crashes["housekeeping"] == 1)
        await fill_segments(lane, 3)

    assert crash_was_logged(caplog, "housekeeping")
    assert local.engine.failure is None


async def test_a_compaction_that_crashes_is_left_for_later(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, InlineCompactor, "compact")
        await fill_segments(lane, 6)

        await until(lambda: local.supervisor.crashes["compaction"] == 1)
        await lane.publish("orders", b"goes on")

    assert crash_was_logged(caplog, "compaction")
    assert local.engine.failure is None


async def test_a_compaction_that_is_half_in_force_stops_the_node(local: Node, monkeypatch, caplog) -> None:
    async with in_process(local) as lane:
        crash_once(monkeypatch, Compacting, "_swap")
        with pytest.raises(StorageFailed):
            await fill_segments(lane, 1_000)

        await expect_stopped(local, lane, "compaction")
    assert "compaction" in str(local.engine.failure)


@pytest.mark.parametrize("where", ["inline", "thread"])
async def test_a_group_that_landed_and_is_not_taken_in_stops_the_node(tmp_path: Path, where, monkeypatch) -> None:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"), settings=StorageSettings(commit=where), clock=clock, entropy=os.urandom
    )
    node = await Node.open(engine, Surroundings(clock, os.urandom))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")
        crash_once(monkeypatch, LocalEngine, "_take_in")
        with pytest.raises(StorageFailed):
            await lane.publish("orders", b"second")

        await expect_stopped(node, lane, "commit")
    await node.close()


async def test_a_failed_sync_leaves_the_node_alive_and_not_ready(tmp_path: Path, monkeypatch) -> None:
    engine = await LocalEngine.start(
        DiskFiles(tmp_path / "data"), settings=StorageSettings(), clock=clock, entropy=os.urandom
    )
    node = await Node.open(engine, Surroundings(clock, os.urandom))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")

        def failing(*args):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(engine._wal, "write", failing)
        with pytest.raises(StorageFailed):
            await lane.publish("orders", b"second")

        state = health(node)
        assert (state.live, state.ready) == (True, False)
        assert "takes no writes" in state.problems[0]
        assert node.supervisor.failure is None
    await node.close()


# --- what clients hear ------------------------------------------------------------------------------------------------


async def test_what_a_crash_says_is_for_the_log_and_not_for_clients(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    owner = node.topic("orders").owners[0]
    owner.distrust("timer", Planted("secret words"))
    with pytest.raises(StorageFailed) as unsure:
        await lane.publish("orders", b"second")
    await until(lambda: not health(node).problems)
    crash_once(monkeypatch, Partition, "apply")
    with pytest.raises(Planted):
        await lane.publish("orders", b"third")
    with pytest.raises(StorageFailed) as stopped:
        await lane.publish("orders", b"fourth")

    assert "Planted" in str(unsure.value)
    assert "secret words" not in str(unsure.value)
    assert "the node stops" in str(stopped.value)
    assert "apply" not in str(stopped.value)
