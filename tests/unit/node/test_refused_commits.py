"""A commit that fails after the engine took it leaves memory ahead of the log: the partition is folded again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import sealane
from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine import Append
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageFull
from sealane.node import Node
from sealane.node.surroundings import Surroundings
from sealane.prompt import Prompt


class Refusing(MemoryEngine):
    """Takes a commit, finds no room while writing it, and says so later: then it did not happen."""

    refuse = False

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        if not self.refuse:
            return super().commit(appends)
        refused: Prompt[None] = Prompt()
        asyncio.get_running_loop().call_soon(refused.set_exception, StorageFull(100, 100))
        return refused


async def published_once_there_is_room(lane: Lane, payload: bytes) -> sealane.Receipt:
    async with asyncio.timeout(10):
        while True:
            try:
                return await lane.publish("orders", payload)
            except StorageFull:
                await asyncio.sleep(0)


async def test_a_publish_that_found_no_room_is_refused_and_the_next_one_takes_its_place() -> None:
    moment = iter(range(1, 10**9))
    engine = Refusing(lambda: next(moment))
    node = await Node.open(engine, Surroundings(lambda: next(moment), bytes))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")
        consumption = lane.consume("orders", subscription="billing")
        messages = aiter(consumption)
        first = await anext(messages)

        engine.refuse = True
        with pytest.raises(StorageFull):
            await lane.publish("orders", b"refused")
        engine.refuse = False

        receipt = await published_once_there_is_room(lane, b"second")
        assert receipt.offset == 1
        # The lease ended with the reload, so the first message comes again, and then what followed it.
        again = await anext(messages)
        second = await anext(messages)
        assert (first.payload, again.payload, second.payload) == (b"first", b"first", b"second")
        with pytest.raises(sealane.LeaseLost):
            await first.ack(confirm=True)
        await again.ack(confirm=True)
        await second.ack(confirm=True)
        await consumption.close()
    await node.close()


async def test_an_ack_that_comes_while_a_partition_is_read_again_waits_for_that_and_holds() -> None:
    moment = iter(range(1, 10**9))
    engine = Refusing(lambda: next(moment))
    node = await Node.open(engine, Surroundings(lambda: next(moment), bytes))
    async with in_process(node) as lane:
        await lane.publish("orders", b"first")
        messages = aiter(lane.consume("orders", subscription="billing"))
        first = await anext(messages)

        engine.refuse = True
        with pytest.raises(StorageFull):
            await lane.publish("orders", b"refused")
        engine.refuse = False
        [owner] = node.topics["default/orders"].owners
        assert owner.error is not None, "it is being read again"
        await first.ack(confirm=True)
        assert owner.error is None

        await published_once_there_is_room(lane, b"second")
        assert (await anext(messages)).payload == b"second", "the first one is settled"
        await messages.aclose()
    await node.close()
