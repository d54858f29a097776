"""One node, two doors: what comes in by one goes out by the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

import sealane
from sealane.client import Lane
from sealane.errors import InvalidBatch
from sealane.message import BatchMeta, Limits, Stamp, encode, from_payloads
from sealane.node.authors import AUTHOR_PREFIX, author_of, written_by
from sealane.node.session import Session
from sealane.security.principals import ADMIN, Principal
from tests.grpc_node import GrpcNode
from tests.integration.grpc.conftest import DEADLINE_SECONDS, ack, messages, pull, send_all, sent


@pytest.fixture
async def lane(running: GrpcNode) -> AsyncIterator[Lane]:
    async with sealane.connect(running.native.url) as opened:
        yield opened


async def test_what_is_sent_by_grpc_is_consumed_by_the_native_protocol(stub: Any, lane: Lane) -> None:
    await stub.SendMessage(sent(b"1", key=b"k", headers={"region": "eu"}, priority=8))
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", "billing"):
            assert (message.payload, message.key) == (b"1", b"k")
            assert (message.headers, message.priority) == ({"region": "eu"}, 8)
            await message.ack(confirm=True)
            break
    assert await pull(stub) == []


async def test_what_is_published_by_the_native_protocol_is_pulled_by_grpc(stub: Any, lane: Lane) -> None:
    receipt = await lane.publish("orders", b"1", key=b"k", headers={"region": "eu"}, priority=8, ttl=60)
    (answer,) = await pull(stub)
    (message,) = answer.messages
    assert (UUID(message.id), message.payload, message.key) == (receipt.id, b"1", b"k")
    assert (dict(message.headers), message.priority) == ({"region": "eu"}, 8)
    assert message.producer_id == "", "who published it by another door is not kept"
    await ack(stub, answer.lease)


async def test_takers_of_both_doors_share_a_subscription(stub: Any, lane: Lane) -> None:
    await send_all(stub, [b"%d" % number for number in range(100)])
    (pulled,) = await pull(stub, 40)
    found = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", "billing"):
            found.append(message.payload)
            await message.ack(confirm=True)
            if len(found) == 60:
                break
    assert sorted([*found, *(message.payload for message in pulled.messages)], key=int) == [
        b"%d" % number for number in range(100)
    ]


async def test_a_message_that_failed_at_one_door_comes_again_at_the_other(stub: Any, lane: Lane) -> None:
    await stub.SendMessage(sent(b"1"))
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", "billing"):
            await message.nack(delay=0)
            break
    (again,) = messages(await pull(stub, 1, wait=30))
    assert (again.payload, again.retries) == (b"1", 1)


async def test_nobody_outside_can_say_that_someone_else_has_written_something(running: GrpcNode) -> None:
    batch = from_payloads([b"x"], Stamp(1, bytes(16)), limits=Limits())
    forged = [
        written_by(batch, Principal("somebody else")),
        batch.with_meta(BatchMeta(producer=AUTHOR_PREFIX + b"\xff", sequence=3)),
    ]
    for each in forged:
        with pytest.raises(InvalidBatch, match="who wrote it"):
            Session(running.node, ADMIN).open_batch(encode(each))
    assert author_of(forged[0].meta) == "somebody else"
    assert author_of(batch.meta) is None
    assert author_of(BatchMeta(producer=b"random")) is None
