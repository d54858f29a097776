"""Who may stage, publish and drop, and that nobody reads what is staged."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import sealane
from sealane.client.lane import Lane
from sealane.delivery.config import SubscriptionConfig
from sealane.node.session import Session
from sealane.security.grants.grants import Grant
from sealane.security.principals import Principal
from tests.staged import batch_of, part_of, stage_part, stored
from tests.unit.node.running_node import Running, running_node

PART = (part_of("p"), 1)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with running_node() as running:
        grants = running.node.identity.grants
        await grants.add(Grant("writer", "publish", "shop/orders"))
        await grants.add(Grant("other", "publish", "shop/invoices"))
        await grants.add(Grant("reader", "consume", "shop/*"))
        await grants.add(Grant("keeper", "admin", "shop/*"))
        yield running


def session_of(running: Running, name: str) -> Session:
    return Session(running.node, Principal(name, domain="shop"))


async def staged(running: Running, lane: Lane) -> None:
    await session_of(running, "writer").stage("orders", batch_of(lane, "p", 0, [b"a"]))


async def test_staging_needs_what_publishing_needs(running: Running) -> None:
    for name in ("other", "reader", "nobody"):
        with pytest.raises(sealane.Forbidden, match="publish 'shop/orders'"):
            await session_of(running, name).stage("orders", batch_of(running.lane, "p", 0, [b"a"]))
    await staged(running, running.lane)
    for name in ("other", "reader", "nobody"):
        with pytest.raises(sealane.Forbidden, match="publish"):
            await session_of(running, name).publish_staged("job", [PART], None)
        with pytest.raises(sealane.Forbidden, match="publish"):
            await session_of(running, name).drop_staged([PART[0]])
    assert await session_of(running, "writer").publish_staged("job", [PART], None) is True
    assert await stored(running.lane, "shop/orders") == [b"a"]


async def test_transactions_are_the_domains_own(running: Running) -> None:
    part = await stage_part(running.lane, "shop/orders", "of default", [[b"b"]])
    assert await running.lane.publish_staged("job", [part]) is True
    await staged(running, running.lane)
    assert await session_of(running, "writer").publish_staged("job", [PART], None) is True


async def test_who_may_read_all_of_a_domain_may_not_read_what_is_staged_for_it(running: Running) -> None:
    await staged(running, running.lane)
    reader = session_of(running, "reader")
    for asked in (
        reader.browse("_staged", 0, 0),
        reader.logs(["_staged"]),
        reader.describe_topic("_staged"),
        reader.attach("_staged", "s", SubscriptionConfig(), "earliest", None),  # type: ignore[arg-type]
    ):
        with pytest.raises(sealane.Forbidden, match="admin 'shop/_staged'"):
            await asked
    assert await reader.logs(["*"]) == []
    assert await reader.topics() == []
    [kept] = await session_of(running, "keeper").browse("_staged", 0, 0)
    assert kept.batch.payloads() == [b"a"]
