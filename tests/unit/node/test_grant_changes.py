"""Grants at work: what a principal may see and use, and what follows when that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import sealane
from sealane.client import Lane
from sealane.client.embedded import InProcessBroker
from sealane.delivery.config import Retry
from sealane.node import Node
from sealane.security.grants.grants import Grant
from sealane.security.principals import Action, Principal
from tests.unit.node.running_node import DEADLINE_SECONDS, Running, running_node, until

ANNA = Principal("anna", "shop")


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with running_node() as started:
        yield started


@asynccontextmanager
async def lane_of(node: Node, principal: Principal, *grants: tuple[Action, str]) -> AsyncIterator[Lane]:
    for action, pattern in grants:
        await node.identity.grants.add(Grant(principal.name, action, pattern))
    async with Lane(InProcessBroker(node, principal)) as lane:
        yield lane


async def test_a_consumer_whose_grant_is_removed_gets_nothing_more(running: Running) -> None:
    await running.lane.publish("shop/orders", b"1")
    async with lane_of(running.node, ANNA, ("consume", "shop/orders")) as lane, asyncio.timeout(DEADLINE_SECONDS):
        consumption = lane.consume("orders", "billing")
        messages = aiter(consumption)
        first = await anext(messages)
        await running.node.identity.grants.remove(Grant("anna", "consume", "shop/orders"))
        await first.ack(confirm=True)  # What it was handed before can still be answered.
        await running.lane.publish("shop/orders", b"2")
        with pytest.raises(sealane.Forbidden, match="'anna' may not consume 'shop/orders'"):
            await anext(messages)
        await consumption.close()
    assert running.node.topic("shop/orders").groups["billing"].consumers == {}


async def test_other_consumers_go_on_when_one_is_cut_off(running: Running) -> None:
    bob = Principal("bob", "shop")
    async with (
        lane_of(running.node, ANNA, ("consume", "shop/*")) as of_anna,
        lane_of(running.node, bob, ("consume", "shop/*")) as of_bob,
        asyncio.timeout(DEADLINE_SECONDS),
    ):
        await running.lane.publish("shop/orders", b"1")
        his = aiter(of_bob.consume("orders", "bob"))
        hers = aiter(of_anna.consume("orders", "anna"))
        await anext(his)
        await anext(hers)
        await running.node.identity.grants.remove(Grant("anna", "consume", "shop/*"))
        await running.lane.publish("shop/orders", b"2")
        assert (await anext(his)).payload == b"2"


async def test_a_principal_sees_only_what_it_may_do_something_to(running: Running) -> None:
    for topic in ("shop/orders", "shop/carts", "bank/accounts"):
        await running.lane.create_topic(topic)
    for exchange in ("shop/events", "bank/events"):
        await running.lane.declare_exchange(exchange)
        await running.lane.bind(exchange, "shop/orders", "o")
        await running.lane.bind(exchange, "bank/accounts", "a")
    async with lane_of(running.node, ANNA, ("publish", "shop/orders"), ("publish", "shop/events")) as lane:
        assert await lane.topics() == ["shop/orders"]
        seen = await lane.exchanges()
        assert list(seen) == ["shop/events"]
        assert [bound.topic for bound in seen["shop/events"].bindings] == ["shop/orders"]


async def test_publishing_to_an_exchange_needs_a_grant_on_each_topic_that_it_leads_to(running: Running) -> None:
    await running.lane.declare_exchange("shop/events", "fanout")
    await running.lane.bind("shop/events", "shop/orders")
    await running.lane.bind("shop/events", "bank/accounts")
    async with lane_of(running.node, ANNA, ("publish", "shop/*")) as lane:
        with pytest.raises(sealane.Forbidden, match="bank/accounts"):
            await lane.publish_to("events", "key", b"1")
    assert "shop/orders" not in await running.lane.topics()


async def test_a_message_is_buried_without_a_grant_on_the_dead_letters_and_read_only_with_one(running: Running) -> None:
    await running.lane.publish("shop/orders", b"poison")
    dead = "shop/orders.billing.dead"
    async with lane_of(running.node, ANNA, ("consume", "shop/orders")) as lane, asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", "billing", retry=Retry("fixed", 0.01, 0.01, attempts_max=1)):
            await message.nack(reason="it cannot be eaten", confirm=True)
            break
        await until(lambda: dead in running.node.topics)
        with pytest.raises(sealane.Forbidden):
            await lane.browse(dead, 0, 0)
        with pytest.raises(sealane.Forbidden):
            await anext(aiter(lane.consume(dead, "looking")))
        await running.node.identity.grants.add(Grant("anna", "consume", dead))
        assert (await anext(aiter(lane.consume(dead, "looking")))).payload == b"poison"


async def test_nobody_uses_up_the_transactions_of_another_domain(running: Running) -> None:
    bob = Principal("bob", "bank")
    async with (
        lane_of(running.node, ANNA, ("publish", "shop/*")) as of_anna,
        lane_of(running.node, bob, ("publish", "bank/*")) as of_bob,
    ):
        for lane in (of_anna, of_bob, running.lane):
            async with lane.transaction("order-42") as transaction:
                await transaction.publish("orders", b"1")
        async with running.lane.transaction("shop/order-42") as transaction:
            await transaction.publish("default/more", b"1")
    for topic in ("shop/orders", "bank/orders", "default/orders", "default/more"):
        assert running.node.topic(topic).owners[0].core.visible == 1, topic


async def test_whoever_has_no_grant_learns_nothing_of_transactions(running: Running) -> None:
    session = InProcessBroker(running.node, Principal("mallory", "default"))
    with pytest.raises(sealane.Forbidden):
        await session.is_transaction_done("order-42")
    with pytest.raises(sealane.Forbidden):
        await session.transact("order-42", [], [])


async def test_a_consumer_that_was_waiting_to_be_attached_when_its_grant_went_is_refused(running: Running) -> None:
    await running.node.identity.grants.add(Grant("anna", "consume", "shop/orders"))
    async with lane_of(running.node, ANNA) as lane, asyncio.timeout(DEADLINE_SECONDS):
        messages = aiter(lane.consume("orders", "billing"))
        attaching = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0)
        await running.node.identity.grants.remove(Grant("anna", "consume", "shop/orders"))
        with pytest.raises(sealane.Forbidden):
            await attaching


@pytest.mark.parametrize(
    "beyond",
    [
        {"subject": "anna", "action": "admin", "pattern": "*/*"},
        {"subject": "anna", "action": "publish", "pattern": "bank/accounts"},
        {"subject": "role:member", "action": "admin", "pattern": "~/*"},
        {"subject": "anna", "action": "admin", "pattern": "_system/node"},
    ],
)
async def test_a_domains_administrator_cannot_grant_itself_more(running: Running, beyond: dict[str, Any]) -> None:
    async with lane_of(running.node, ANNA, ("admin", "shop/*")) as lane:
        with pytest.raises(sealane.Forbidden, match="whoever administers all that its pattern takes in"):
            await lane.administer("grant.add", **beyond)
        with pytest.raises(sealane.Forbidden):
            await lane.status()


async def test_a_domains_administrator_does_everything_there_and_lets_others(running: Running) -> None:
    await running.node.identity.grants.add(Grant("bob", "publish", "bank/*"))
    bob = Principal("bob", "bank")
    async with lane_of(running.node, ANNA, ("admin", "shop/*")) as lane, lane_of(running.node, bob) as of_bob:
        await lane.create_topic("orders")
        with pytest.raises(sealane.Forbidden):
            await of_bob.publish("shop/orders", b"1")
        assert await lane.administer("grant.add", subject="bob", action="publish", pattern="shop/orders")
        await of_bob.publish("shop/orders", b"1")
        told = await lane.administer("grant.check", principal="bob", action="publish", resource="shop/orders")
        assert told["grant"] == {"subject": "bob", "action": "publish", "pattern": "shop/orders"}
        listed = await lane.administer("grant.list")
        assert {(each["subject"], each["pattern"]) for each in listed} == {("anna", "shop/*"), ("bob", "shop/orders")}
        await lane.administer("grant.remove", subject="bob", action="publish", pattern="shop/orders")
        with pytest.raises(sealane.Forbidden):
            await of_bob.publish("shop/orders", b"1")


async def test_everybody_may_ask_what_they_may_do_themselves(running: Running) -> None:
    async with lane_of(running.node, ANNA, ("publish", "shop/o*")) as lane:
        told = await lane.administer("grant.check", principal="anna", action="publish", resource="orders")
        assert told["allowed"]
        assert told["grant"] == {"subject": "anna", "action": "publish", "pattern": "shop/o*"}
        told = await lane.administer("grant.check", principal="anna", action="consume", resource="orders")
        assert (told["allowed"], told["grant"], told["resource"]) == (False, None, "shop/orders")
        with pytest.raises(sealane.Forbidden):
            await lane.administer("grant.check", principal="bob", action="publish", resource="shop/orders")
