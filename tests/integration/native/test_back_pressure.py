"""A slow consumer slows only itself, a slow disk slows producers, and the node's memory stays bounded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sealane.engine.local import LocalEngine, StorageSettings
from sealane.node.surroundings import wall_clock_us
from sealane.wire import messages as wire
from sealane.wire.connection import CALLS_OPEN_MAX
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer, batch_of, payloads_of
from tests.integration.native.slow_disk import SlowFiles

KiB, MiB = 1 << 10, 1 << 20


@pytest.fixture
async def disk(tmp_path: Path) -> SlowFiles:
    return SlowFiles(tmp_path / "data")


async def local_engine(disk: SlowFiles) -> LocalEngine:
    settings = StorageSettings(commit="thread", compaction=False)
    return await LocalEngine.start(disk, settings=settings, clock=wall_clock_us, entropy=os.urandom)


@pytest.fixture
async def slow(disk: SlowFiles, no_stray_errors: None) -> AsyncIterator[Running]:
    """A node whose disk a test may stop, with room for little."""
    async with running_node(
        await local_engine(disk), in_flight_bytes_max=2 * MiB, in_flight_bytes_total_max=5 * MiB
    ) as running:
        try:
            yield running
        finally:
            disk.goes_on.set()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def stands_still(count: Callable[[], int]) -> None:
    """Return when a count does not grow any more."""
    seen: list[int] = []

    async def same_as_before() -> bool:
        seen.append(count())
        await asyncio.sleep(0.02)
        return len(set(seen[-10:])) == 1 and len(seen) >= 10

    await eventually(same_as_before)


async def flood(peer: Peer, count: int, body: bytes) -> list[int]:
    """Publish as fast as the node takes it; returns the calls."""
    calls = []
    for _ in range(count):
        calls.append(peer.wire.new_call())
        peer.say(wire.Publish(calls[-1], "orders"), body)
        await peer.writer.drain()
    return calls


async def test_while_the_disk_is_slow_producers_wait_and_memory_stays_bounded(slow: Running, disk: SlowFiles) -> None:
    body = batch_of(b"x" * 100 * KiB)
    async with await Peer.enter(slow.address) as peer:
        await peer.publish("orders", b"first")
        before = resident_bytes()
        disk.goes_on.clear()
        flooding = asyncio.create_task(flood(peer, 1_000, body))

        await eventually(lambda: slow.door.in_flight_bytes > 2 * MiB)
        await stands_still(lambda: slow.door.received_bytes)
        assert not flooding.done()
        assert slow.door.in_flight_bytes < 2 * MiB + 512 * KiB
        assert resident_bytes() - before < 40 * MiB  # Of 100 MiB that wait to be sent.

        disk.goes_on.set()
        calls = await flooding
        answers = [await peer.answer(call) for call in calls]
        assert [answer.shares[0].first for answer in answers] == list(range(1, 1_001))
        assert slow.door.in_flight_bytes == 0


async def test_all_producers_together_have_a_limit_too(slow: Running, disk: SlowFiles) -> None:
    body = batch_of(b"x" * 100 * KiB)
    peers = [await Peer.enter(slow.address) for _ in range(8)]
    await peers[0].publish("orders", b"first")
    disk.goes_on.clear()
    flooding = [asyncio.create_task(flood(peer, 50, body)) for peer in peers]
    await eventually(lambda: slow.door.in_flight_bytes > 5 * MiB)
    await stands_still(lambda: slow.door.received_bytes)
    assert slow.door.in_flight_bytes < 5 * MiB + len(peers) * 512 * KiB

    disk.goes_on.set()
    for peer, task in zip(peers, flooding, strict=True):
        for call in await task:
            assert isinstance(await peer.answer(call), wire.Published)
        await peer.close()


async def test_ten_thousand_publishes_may_wait_and_one_more_is_too_many(disk: SlowFiles, no_stray_errors: None) -> None:
    async with running_node(await local_engine(disk)) as running, await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"first")
        disk.goes_on.clear()
        calls = await flood(peer, CALLS_OPEN_MAX, batch_of(b"x"))
        peer.wire.calls.clear()
        await flood(peer, 1, batch_of(b"x"))
        goodbye = await peer.hear(wire.Goodbye)
        assert (goodbye.code, len(calls)) == ("unexpected-message", CALLS_OPEN_MAX)
        disk.goes_on.set()
        topic = running.node.topics["default/orders"]
        await eventually(lambda: topic.owners[0].core.visible == CALLS_OPEN_MAX + 1)


async def test_a_stuck_disk_does_not_stop_consumers_of_what_is_there(slow: Running, disk: SlowFiles) -> None:
    async with await Peer.enter(slow.address) as producer, await Peer.enter(slow.address) as consumer:
        await producer.publish("orders", *[b"x"] * 100)
        disk.goes_on.clear()
        flooding = asyncio.create_task(flood(producer, 100, batch_of(b"y" * 100 * KiB)))
        await eventually(lambda: slow.door.in_flight_bytes > 2 * MiB)
        attaching = asyncio.create_task(consumer.ask(wire.Browse, "orders", 0, 0))
        browsed = await attaching
        assert browsed.parts[0][1] == 100
        disk.goes_on.set()
        for call in await flooding:
            await producer.answer(call)


async def test_a_consumer_that_does_not_read_slows_only_itself(no_stray_errors: None) -> None:
    async with (
        running_node(unsent_bytes_max=256 * KiB) as running,
        await Peer.enter(running.address) as producer,
        await Peer.enter(running.address) as stuck,
        await Peer.enter(running.address) as quick,
    ):
        payload = b"x" * 50 * KiB
        for _ in range(20):
            await producer.publish("orders", *[payload] * 20)
        stuck_calls = await stuck.attach("orders", "stuck", credit=1_000_000)
        assert isinstance(stuck_calls, wire.Attached)
        consumer = next(iter(running.node.topics["default/orders"].attachments.values())).consumer
        await eventually(lambda: consumer.paused)
        leased = 1_000_000 - consumer.credit
        assert 0 < leased < 400, "it is given what fits its connection, and no more"

        await quick.attach("orders", "quick", credit=1_000_000)
        read = 0
        while read < 400:
            read += len(payloads_of(*await quick.hear_with_body(wire.Deliver)))
        assert isinstance(await producer.publish("orders", payload), wire.Published)
        assert consumer.paused
        assert 1_000_000 - consumer.credit == leased

        # Whoever reads again gets everything, in order.
        offsets: list[int] = []
        while len(offsets) < 401:
            deliver = await stuck.hear(wire.Deliver)
            offsets += [part[0] + each for part in deliver.parts for each in range(part[1])]
        assert offsets == list(range(401))
        await eventually(lambda: not consumer.paused)


async def test_who_asks_and_does_not_listen_is_not_listened_to_either(no_stray_errors: None) -> None:
    async with (
        running_node(unsent_bytes_max=64 * KiB) as running,
        await Peer.enter(running.address) as other,
        await Peer.enter(running.address) as deaf,
    ):
        await other.publish("orders", *[b"x" * 10 * KiB] * 100)
        deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
        calls = [deaf.wire.new_call() for _ in range(500)]
        before = resident_bytes()
        for call in calls:
            deaf.say(wire.Browse(call, "orders", 0, 0))
        await stands_still(lambda: running.door.sent_bytes)
        assert resident_bytes() - before < 50 * MiB  # Of 500 MiB that were asked for.
        assert isinstance(await other.publish("orders", b"y"), wire.Published)

        deaf.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for call in calls:
            assert isinstance(await deaf.answer(call), wire.Browsed)


async def test_publishes_to_a_new_topic_do_not_wait_for_each_other(slow: Running, disk: SlowFiles) -> None:
    async with await Peer.enter(slow.address) as peer:
        disk.goes_on.clear()
        calls = await flood(peer, 20, batch_of(b"x"))
        await eventually(lambda: "default/orders" in slow.node.topics)
        core = slow.node.topics["default/orders"].owners[0].core
        await eventually(lambda: core.end == 20)
        assert core.visible == 0
        disk.goes_on.set()
        assert [(await peer.answer(call)).shares[0].first for call in calls] == list(range(20))
