"""A session: commands in one principal's name, authorised in one place, with what came as bytes checked first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

import sealane
from sealane.engine.memory import MemoryEngine
from sealane.message import Limits, Stamp, encode, from_payloads
from sealane.message.batch import Batch, BatchMeta
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.node.session import PRODUCER_BYTES_MAX, Session
from sealane.node.surroundings import of_this_machine
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    surroundings = of_this_machine()
    node = await Node.open(MemoryEngine(surroundings.clock), surroundings, NodeSettings())
    yield node
    await node.close()


def batch_of(*payloads: bytes, **meta: object) -> Batch:
    batch = from_payloads(payloads, Stamp(1, bytes(16)), limits=Limits())
    return batch.with_meta(msgspec.structs.replace(BatchMeta(), **meta)) if meta else batch


async def test_batches_for_a_topic_that_is_not_there_yet_are_stored_in_the_order_they_came(node: Node):
    session = Session(node, ADMIN)
    publishing = [session.publish("new", batch_of(b"%d" % number)) for number in range(20)]
    offsets = [receipts[0].offset for receipts in await asyncio.gather(*publishing)]
    assert offsets == list(range(20))
    stored = await session.browse("new", 0, 0)
    assert [payload for each in stored for payload in each.batch.payloads()] == [b"%d" % n for n in range(20)]


async def test_a_publish_that_waits_in_line_is_not_harmed_by_one_that_was_given_up_before_it(node: Node):
    session = Session(node, ADMIN)
    first, second = session.publish("new", batch_of(b"1")), session.publish("new", batch_of(b"2"))
    first.cancel()
    assert len(await second) == 1
    assert len(await session.publish("new", batch_of(b"3"))) == 1


async def test_a_refusal_comes_through_the_future(node: Node):
    with pytest.raises(sealane.InvalidName):
        await Session(node, ADMIN).publish("no such/name/at all", batch_of(b"1"))


async def test_whoever_has_no_grant_is_refused_whatever_they_ask(node: Node):
    await Session(node, ADMIN).create_topic("orders", {})
    session = Session(node, Principal("mallory"))
    asked = {
        "publish": session.publish("orders", batch_of(b"1")),
        "consume": session.browse("orders", 0, 0),
        "manage": session.delete_topic("orders"),
    }
    for action, asking in asked.items():
        with pytest.raises(sealane.Forbidden) as refused:
            await asking
        assert (refused.value.principal, refused.value.action, refused.value.resource) == (
            "mallory",
            action,
            "default/orders",
        )


async def test_bare_names_are_in_the_principals_domain(node: Node):
    session = Session(node, Principal("anna", domain="shop", roles=frozenset({"admin"})))
    await session.publish("orders", batch_of(b"1"))
    assert await session.topics() == ["shop/orders"]


async def test_nobody_publishes_to_the_systems_topics(node: Node):
    session = Session(node, ADMIN)
    assert await session.transact("once", [("orders", batch_of(b"1"))], [])
    with pytest.raises(sealane.InvalidName):
        await session.publish("_transactions", batch_of(b"1"))
    with pytest.raises(sealane.InvalidName):
        await session.delete_topic("_transactions")


async def test_a_gate_without_authentication_lets_everyone_in_as_admin(node: Node):
    assert (await Gate(node, everyone_is_admin).enter(Introduction())).principal == ADMIN


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        (batch_of(b"1", only="billing"), "addresses one subscription"),
        (batch_of(b"1", producer=bytes(PRODUCER_BYTES_MAX + 1), sequence=0), "producer id has 65 bytes"),
        (batch_of(b"1").slice(0, 0), "0 messages"),
    ],
)
async def test_a_batch_from_outside_may_not_say_what_is_the_nodes_to_say(node: Node, batch: Batch, problem: str):
    with pytest.raises(sealane.InvalidBatch, match=problem):
        Session(node, ADMIN).open_batch(encode(batch))


async def test_a_producer_id_may_be_as_long_as_the_limit(node: Node):
    opened = Session(node, ADMIN).open_batch(encode(batch_of(b"1", producer=bytes(PRODUCER_BYTES_MAX), sequence=0)))
    assert opened.meta.producer == bytes(PRODUCER_BYTES_MAX)
