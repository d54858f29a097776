"""A lane and a node that stands still, is slow or goes away; callers who give up, and consumers who stall."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

import sealane
from tests.integration.client.node_process import NodeProcess
from tests.native_node import native_node

DEADLINE_SECONDS = 60.0


async def in_time(condition) -> None:
    """Until the condition, which may be asked of the node, holds."""
    stop = time.monotonic() + DEADLINE_SECONDS
    while not await condition():
        assert time.monotonic() < stop, "it did not come to pass in time"
        await asyncio.sleep(0.01)


async def test_a_node_that_stands_still_is_waited_for_and_everything_goes_on(tmp_path: Path) -> None:
    async with NodeProcess(tmp_path) as node, sealane.connect(node.url, heartbeat_seconds=1) as lane:
        messages = aiter(lane.consume("orders", "billing"))
        await lane.publish("orders", b"before")
        assert (await anext(messages)).payload == b"before"
        consumer_link = lane._broker._pool._lines[1].current  # type: ignore[attr-defined]
        node.pause()
        publishing = asyncio.create_task(lane.publish("orders", b"meanwhile"))

        async def given_up() -> bool:
            return not consumer_link.open

        await in_time(given_up)
        assert not publishing.done()
        node.go_on()
        await publishing
        await lane.publish("orders", b"after")

        payloads: set[bytes] = set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while payloads != {b"before", b"meanwhile", b"after"}:
                message = await anext(messages)
                payloads.add(message.payload)
                await message.ack()
        await messages.aclose()


async def test_leaving_the_block_does_not_depend_on_a_node_that_stands_still(tmp_path: Path) -> None:
    async with NodeProcess(tmp_path) as node:
        async with asyncio.timeout(DEADLINE_SECONDS):
            async with sealane.connect(node.url) as lane:
                await lane.publish("orders", b"a")
                await anext(aiter(lane.consume("orders", "billing")))
                node.pause()


async def test_an_error_leaves_the_block_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever waited for the node would wait for longer than this test may take.
    monkeypatch.setattr("sealane.client.lane.CLOSE_SECONDS", 600.0)
    monkeypatch.setattr("sealane.client.remote.hold.CLOSE_SECONDS", 600.0)
    monkeypatch.setattr("sealane.client.remote.connecting.CLOSE_SECONDS", 600.0)

    async def fail(node: NodeProcess) -> None:
        async with sealane.connect(node.url) as lane, lane.consume("orders", "billing") as messages:
            await lane.publish("orders", b"a")
            await anext(aiter(messages))
            node.pause()
            raise ZeroDivisionError

    async with NodeProcess(tmp_path) as node, asyncio.timeout(DEADLINE_SECONDS):
        with pytest.raises(ZeroDivisionError):
            await fail(node)


async def test_a_node_that_is_gone_is_a_deadline_and_one_that_is_back_is_found(tmp_path: Path) -> None:
    async with NodeProcess(tmp_path) as node, sealane.connect(node.url) as lane:
        await lane.publish("orders", b"a")
        await node.end()
        with pytest.raises(sealane.DeadlineExceeded, match="connection refused"):
            await lane.publish_many("orders", [b"b"], timeout=0.5)
        with pytest.raises(sealane.DeadlineExceeded):
            await lane.publish("orders", b"c", timeout=0.5)
        await node.start()
        await lane.publish("orders", b"d")


async def test_callers_who_give_up_at_any_moment_leave_everything_in_order() -> None:
    chance = random.Random(7)
    async with native_node() as node, sealane.connect(node.url) as lane:
        await lane.create_topic("orders")

        async def use(number: int) -> None:
            await lane.publish("orders", b"%d" % number, key=b"%d" % (number % 7))
            await lane.describe_topic("orders")
            async for message in lane.consume("orders", f"s{number % 5}", prefetch=3):
                await message.ack(confirm=bool(number % 2))
                async with lane.transaction(f"{number}") as transaction:
                    await transaction.publish("letters", b"x")
                await message.extend(10)

        users = [asyncio.create_task(use(number)) for number in range(150)]
        while users:
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                user = users.pop(chance.randrange(len(users)))
                user.cancel()
                with suppress(asyncio.CancelledError, sealane.LeaseLost):
                    await user

        async def nobody_consumes() -> bool:
            found = (await lane.describe_topic("orders")).subscriptions
            return sum(each.consumers for each in found) == 0 and node.door.consumers == 0

        await in_time(nobody_consumes)
        pool = lane._broker._pool  # type: ignore[attr-defined]
        assert [list(line.links) for line in pool._lines] == [[1], [1]], "no connection was lost over it"
        assert all(not line.consumers and len(line.users) <= 1 for line in pool._lines)
        await lane.publish("orders", b"still")


@pytest.mark.parametrize("connections", [1, 2])
async def test_a_consumer_that_stalls_holds_up_no_publish_and_no_neighbour(connections: int) -> None:
    large = bytes(200_000)
    async with native_node() as node, sealane.connect(node.url, connections=connections) as lane:
        stalled = lane.consume("orders", "stalled", prefetch=100_000)
        async with stalled:
            for _ in range(50):
                await lane.publish_many("orders", [large] * 10)
            count = 0
            async with asyncio.timeout(DEADLINE_SECONDS):
                async for batch in lane.consume_batches("orders", "busy", messages_max=100):
                    count += len(batch)
                    await batch.ack()
                    if count == 500:
                        break


async def test_nothing_is_left_of_a_lane_that_was_closed() -> None:
    async with native_node() as node:
        before = asyncio.all_tasks()
        async with sealane.connect(node.url, connections=3) as lane:
            async with lane.producer("orders") as producer:
                for number in range(100):
                    await producer.send(b"%d" % number)
            messages = [aiter(lane.consume("orders", f"s{number}")) for number in range(4)]
            for each in messages:
                await (await anext(each)).ack()
        with pytest.raises(sealane.Closed):
            await lane.publish("orders", b"late")
        with pytest.raises(sealane.Closed):
            await lane.topics()

        async def nobody_is_there() -> bool:
            return node.door.connections == 0 and asyncio.all_tasks() <= before

        await in_time(nobody_is_there)


def test_a_lane_works_on_another_event_loop_too() -> None:
    async def converse() -> list[bytes]:
        assert "uvloop" in type(asyncio.get_running_loop()).__module__
        async with native_node() as node, sealane.connect(node.url) as lane:
            await lane.publish_many("orders", [b"%d" % number for number in range(1_000)])
            await lane.publish_many("orders", [bytes(1_000_000)] * 20)
            payloads: list[bytes] = []
            async for batch in lane.consume_batches("orders", "billing"):
                payloads += batch.payloads()
                await batch.ack(confirm=True)
                if len(payloads) == 1_020:
                    return payloads
        raise AssertionError

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        payloads = runner.run(converse())
    assert payloads[:1_000] == [b"%d" % number for number in range(1_000)]
    assert set(payloads[1_000:]) == {bytes(1_000_000)}
