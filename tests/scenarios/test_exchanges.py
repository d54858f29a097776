"""Exchanges lead a routing key to topics."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from tests.scenarios.broker import Broker, take_payloads


async def ends(lane: sealane.Lane, *topics: str) -> list[int]:
    return [(await lane.describe_topic(topic)).partitions[0].end for topic in topics]


async def test_a_direct_exchange_routes_by_the_exact_key(lane: sealane.Lane) -> None:
    await lane.declare_exchange("sales")
    await lane.bind("sales", "orders", "order")
    await lane.bind("sales", "audit", "order")
    await lane.bind("sales", "returns", "return")

    receipts = await lane.publish_to("sales", "order", b"a", key=b"k")

    assert set(receipts) == {"default/orders", "default/audit"}
    assert receipts["default/orders"].offset == 0
    assert await take_payloads(lane.consume("orders", "s"), 1) == [b"a"]
    assert await take_payloads(lane.consume("audit", "s"), 1) == [b"a"]


@pytest.mark.parametrize(
    ("key", "topics"),
    [
        ("eu.order.new", {"default/eu", "default/orders", "default/all"}),
        ("us.order", {"default/orders", "default/all"}),
        ("eu", {"default/eu", "default/all"}),
        ("us.return.new", {"default/all"}),
    ],
)
async def test_a_topic_exchange_routes_by_patterns(lane: sealane.Lane, key: str, topics: set[str]) -> None:
    await lane.declare_exchange("sales", "topic")
    for topic, pattern in (("eu", "eu.#"), ("orders", "*.order.#"), ("all", "#")):
        await lane.bind("sales", topic, pattern)
    assert set(await lane.publish_to("sales", key, b"a")) == topics


async def test_a_fanout_exchange_routes_everywhere(lane: sealane.Lane) -> None:
    await lane.declare_exchange("news", "fanout")
    await lane.bind("news", "screens")
    await lane.bind("news", "shop/mail")
    assert set(await lane.publish_to("news", "whatever", b"a")) == {"default/screens", "shop/mail"}


async def test_what_cannot_be_routed_is_an_error_and_nothing_is_stored(lane: sealane.Lane) -> None:
    await lane.declare_exchange("sales")
    await lane.bind("sales", "orders", "order")
    with pytest.raises(sealane.Unroutable) as refused:
        await lane.publish_to("sales", "refund", b"a")
    assert (refused.value.exchange, refused.value.routing_key) == ("default/sales", "refund")
    assert await lane.topics() == []


async def test_one_refusing_topic_refuses_for_all(lane: sealane.Lane) -> None:
    await lane.create_topic("small", messages_max=1)
    async with lane.consume("small", "s"):
        pass
    await lane.declare_exchange("news", "fanout")
    for topic in ("large", "small"):
        await lane.bind("news", topic)
    await lane.publish_to("news", "", b"first")
    with pytest.raises(sealane.QueueFull):
        await lane.publish_to("news", "", b"second")
    assert await ends(lane, "large", "small") == [1, 1]


async def test_a_binding_can_be_taken_back(lane: sealane.Lane) -> None:
    await lane.declare_exchange("sales")
    await lane.bind("sales", "orders", "order")
    await lane.bind("sales", "orders", "order")
    await lane.unbind("sales", "orders", "order")
    await lane.unbind("sales", "orders", "order")
    with pytest.raises(sealane.Unroutable):
        await lane.publish_to("sales", "order", b"a")


async def test_an_exchange_keeps_its_kind(lane: sealane.Lane) -> None:
    await lane.declare_exchange("sales", "topic")
    await lane.declare_exchange("sales", "topic")
    with pytest.raises(sealane.AlreadyExists, match="its kind is topic, not fanout"):
        await lane.declare_exchange("sales", "fanout")


async def test_an_unknown_kind_is_refused(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.InvalidArgument):
        await lane.declare_exchange("sales", "psychic")  # type: ignore[arg-type]


async def test_an_exchange_that_was_never_declared_is_not_found(lane: sealane.Lane) -> None:
    for call in (lane.publish_to("sales", "order", b"a"), lane.bind("sales", "orders"), lane.unbind("sales", "orders")):
        with pytest.raises(sealane.ExchangeNotFound):
            await call


async def test_a_binding_to_a_name_that_cannot_be_a_topic_is_refused(lane: sealane.Lane) -> None:
    await lane.declare_exchange("sales")
    for topic in ("no spaces", "", "_system", "a/b/c"):
        with pytest.raises(sealane.InvalidName):
            await lane.bind("sales", topic, "order")


async def test_exchanges_and_bindings_survive_a_restart(directory: Broker) -> None:
    await directory.lane.declare_exchange("sales", "topic")
    await asyncio.gather(*(directory.lane.bind("sales", f"orders-{index}", "order.*") for index in range(5)))
    lane = await directory.restart()
    assert len(await lane.publish_to("sales", "order.new", b"a")) == 5


async def test_a_given_id_is_stored_once_in_each_topic(lane: sealane.Lane) -> None:
    await lane.declare_exchange("news", "fanout")
    for topic in ("a", "b"):
        await lane.bind("news", topic)
    given = "01890000-0000-7000-8000-00000000002a"
    first = await lane.publish_to("news", "", b"x", id=given)
    assert await lane.publish_to("news", "", b"x", id=given) == first
    assert await ends(lane, "a", "b") == [1, 1]


async def test_many_may_declare_it_at_once(lane: sealane.Lane) -> None:
    await asyncio.gather(*(lane.declare_exchange("sales", "topic") for _ in range(5)))
    await lane.bind("sales", "orders", "order")
    assert len(await lane.publish_to("sales", "order", b"a")) == 1
