"""A crash in whatever runs by itself is logged and counted, and then it goes on."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.client.lane import Lane
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.partition import Partition
from sealane.delivery.subscription import Subscription
from sealane.engine.memory import MemoryEngine
from sealane.node import Node
from sealane.node.burial import Undertaker
from sealane.node.dispatch import Dispatcher
from sealane.node.owner import PartitionOwner
from sealane.node.registry import TopicRegistry
from sealane.node.retention import Retention
from sealane.node.status import health
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node, until
from tests.unit.node.supervision.planted import Planted, crash_once, crash_was_logged


async def take(lane: Lane, count: int, topic: str = "orders") -> list[bytes]:
    taken: list[bytes] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume(topic, subscription="billing"):
            taken.append(message.payload)
            await message.ack()
            if len(taken) == count:
                break
    return taken


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


async def test_a_snapshot_that_the_engine_was_not_told_of_is_made_good_by_the_next_one(
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
    await until(lambda: node.engine._partitions[key].journal_folded > 0)  # type: ignore[attr-defined]


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
