"""What a node would end the connection over is refused before it is sent, or sent in pieces that it takes."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
from pyroaring import BitMap64

import sealane
from sealane.client.remote.requests import LEASE_EDGES, RUN_EDGES_MAX, check_size, grouped_runs, split_runs
from sealane.errors import LimitExceeded
from sealane.wire.frames import HEADER_BYTES_MAX
from sealane.wire.runs import from_runs
from tests.native_node import native_node
from tests.scenarios.broker import all_settled, eventually

NO_RETRY = sealane.Retry(delay_seconds=None)  # type: ignore[arg-type]
SCATTERED = BitMap64(range(0, RUN_EDGES_MAX, 2))
"""As many runs as fit one answer."""


def test_messages_that_lie_together_are_one_answer() -> None:
    [runs] = split_runs(1, 2, BitMap64(range(10**6)))
    assert runs.runs == [0, 10**6]


def test_scattered_messages_are_split_at_the_limit_and_none_is_left_out() -> None:
    assert len(list(split_runs(1, 2, SCATTERED))) == 1
    more = SCATTERED | BitMap64([10**9])
    parts = list(split_runs(1, 2, more))

    assert [len(part.runs or ()) for part in parts] == [RUN_EDGES_MAX, 2]
    assert from_runs(parts[0].runs or []) | from_runs(parts[1].runs or []) == more


def test_leases_are_grouped_up_to_the_limit() -> None:
    one = (0, 7, BitMap64([1]))
    fitting = RUN_EDGES_MAX // (LEASE_EDGES + 2)

    assert [len(group) for group in grouped_runs([one] * fitting)] == [fitting]
    assert [len(group) for group in grouped_runs([one] * (fitting + 1))] == [fitting, 1]
    assert [len(group) for group in grouped_runs([])] == [0]


def test_a_frame_is_refused_beyond_its_limits_and_not_at_them() -> None:
    check_size([bytes(HEADER_BYTES_MAX)], HEADER_BYTES_MAX)
    check_size([bytes(8), bytes(92)], 100)
    with pytest.raises(LimitExceeded):
        check_size([bytes(HEADER_BYTES_MAX + 1)], 1 << 30)
    with pytest.raises(LimitExceeded):
        check_size([bytes(8), bytes(93)], 100)


@pytest.mark.parametrize(
    "use",
    [
        lambda lane: lane.publish(7, b"x"),
        lambda lane: lane.publish("\ud800", b"x"),
        lambda lane: lane.publish_many(None, [b"x"]),
        lambda lane: lane.publish_to("exchange", 7, b"x"),
        lambda lane: lane.create_topic(7),
        lambda lane: lane.create_topic("orders", partitions=object()),
        lambda lane: lane.configure_topic("orders", retention_seconds=1 << 70),
        lambda lane: lane.describe_topic(["orders"]),
        lambda lane: lane.seek("orders", b"\xff", "earliest"),
        lambda lane: lane.seek("orders", "s", {0: 1 << 70}),
        lambda lane: lane.seek("orders", "s", datetime(2026, 1, 1)),  # noqa: DTZ001
        lambda lane: lane.redrive("orders", "s", rate="fast"),
        lambda lane: lane.browse("orders", "zero"),
        lambda lane: lane.bind("exchange", "orders", 7),
        lambda lane: anext(aiter(lane.consume("orders", 7))),
        lambda lane: anext(aiter(lane.consume("orders", "s", filter="x" * HEADER_BYTES_MAX))),
        lambda lane: anext(aiter(lane.consume("orders", "s", retry=NO_RETRY))),
    ],
)
async def test_nonsense_is_the_callers_error_and_costs_no_connection(use) -> None:
    async with native_node() as node, sealane.connect(node.url, connections=1, timeout=30) as lane:
        await lane.create_topic("orders")
        with pytest.raises((sealane.InvalidArgument, sealane.InvalidName, LimitExceeded, TypeError)):
            await use(lane)
        assert await lane.topics() == ["default/orders"]
        assert list(lane._broker._pool.commands.links) == [1]  # type: ignore[attr-defined]


async def test_a_transaction_that_is_larger_than_a_frame_is_refused_and_nothing_of_it_happens() -> None:
    async def commit(lane: sealane.Lane) -> None:
        async with lane.transaction("large") as transaction:
            for _ in range(20):
                await transaction.publish("orders", bytes(1_000_000))

    async with native_node() as node, sealane.connect(node.url) as lane:
        with pytest.raises(LimitExceeded, match="request"):
            await commit(lane)
        assert await lane.topics() == []


async def test_scattered_acks_of_a_large_batch_all_arrive() -> None:
    count = 50_000
    async with native_node() as node, sealane.connect(node.url) as lane:
        await lane.publish_many("orders", [b"x"] * count)
        async with asyncio.timeout(60):
            async with lane.consume_batches("orders", "s", messages_max=count, prefetch=count) as batches:
                left = count
                async for batch in batches:
                    messages = list(batch)
                    for message in messages[::2]:
                        await message.ack()
                    for message in messages[1::2]:
                        await message.ack()
                    left -= len(messages)
                    if not left:
                        break
        await all_settled(lane, "orders", "s")
        assert list(lane._broker._pool._lines[1].links) == [1]  # type: ignore[attr-defined]


async def test_a_progress_callback_that_fails_is_the_callers_error_and_costs_no_connection() -> None:
    def fail(done: int) -> None:
        raise ZeroDivisionError

    async with native_node() as node, sealane.connect(node.url, connections=1) as lane:
        await lane.publish("orders", b"x")
        retry = sealane.Retry("fixed", 0.0, attempts_max=1)
        async for message in lane.consume("orders", "s", retry=retry):
            await message.nack(confirm=True)
            break

        async def is_dead() -> bool:
            return "default/orders.s.dead" in await lane.topics()

        await eventually(is_dead)
        with pytest.raises(ZeroDivisionError):
            await lane.redrive("orders", "s", progress=fail)
        assert list(lane._broker._pool.commands.links) == [1]  # type: ignore[attr-defined]
