"""A grant that is taken away ends what it had let begin, by every door."""

from __future__ import annotations

import asyncio

import pytest

from sealane.client.embedded import in_process
from sealane.errors import Forbidden
from sealane.security.grants.grants import Grant
from sealane.security.principals import Principal
from tests.access.commands import DEADLINE_SECONDS
from tests.access.doors import DOORS, Guests
from tests.native_node import native_node


@pytest.mark.parametrize("door", DOORS)
async def test_a_consumer_whose_grant_is_removed_is_told_and_gets_nothing_more(door: str) -> None:
    guests, grant = Guests(), Grant("anna", "consume", "shop/orders")
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        native_node(authenticate=guests.authenticate) as node,
        in_process(node.node) as admin,
        DOORS[door](node, guests, Principal("anna", "shop")) as lane,
    ):
        await node.node.identity.grants.add(grant)
        await admin.publish("shop/orders", b"1")
        messages = aiter(lane.consume("orders", "billing"))
        first = await anext(messages)
        await admin.administer("grant.remove", subject="anna", action="consume", pattern="shop/orders")
        await first.ack()
        await admin.publish("shop/orders", b"2")
        with pytest.raises(Forbidden, match="may not consume 'shop/orders'"):
            await anext(messages)
