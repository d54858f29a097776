"""A stream that goes on: it holds so many messages at a time, and has more as soon as one of them is answered for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from sealane.client.embedded import in_process
from sealane.doors.grpc import swarmmq_pb2 as pb
from tests.grpc_node import GrpcNode, client
from tests.integration.grpc.conftest import (
    DEADLINE_SECONDS,
    ack,
    messages,
    metadata,
    payloads,
    pull,
    refusal,
    send_all,
    sent,
    wish,
)
from tests.integration.native.conftest import eventually

QUIET_SECONDS = 0.3
"""Nothing has come for so long, where something would come within milliseconds."""


class Following:
    """A stream that goes on, and all that it has brought."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.answers: list[pb.PullMessagesResponse] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for answer in self.call:
            self.answers.append(answer)

    @property
    def payloads(self) -> list[bytes]:
        return payloads(self.answers)

    async def has(self, expected: Sequence[bytes]) -> None:
        await eventually(lambda: len(self.payloads) >= len(expected))
        await asyncio.wait([self._reading], timeout=QUIET_SECONDS)
        assert self.payloads == list(expected)

    async def leave(self) -> None:
        self.call.cancel()
        await asyncio.wait([self._reading])

    async def end(self) -> grpc.aio.AioRpcError:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await asyncio.wait([self._reading])
        error = self._reading.exception()
        assert isinstance(error, grpc.aio.AioRpcError)
        return error


@asynccontextmanager
async def following(stub: Any, max_messages: int, method: str = "PullMessages") -> AsyncIterator[Following]:
    stream = Following(getattr(stub, method)(wish(max_messages, follow=True)))
    try:
        yield stream
    finally:
        await stream.leave()


def nack(lease: str, ids: Sequence[str] = (), **fields: Any) -> pb.NackMessageRequest:
    return pb.NackMessageRequest(destination="orders", subscription="billing", lease=lease, ids=ids, **fields)


async def test_it_brings_what_is_there_and_what_comes(stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    async with following(stub, 10) as stream:
        await stream.has([b"1", b"2"])
        await stub.SendMessage(sent(b"3"))
        await stream.has([b"1", b"2", b"3"])


async def test_it_holds_no_more_than_it_may_until_some_are_settled(stub: Any) -> None:
    await send_all(stub, [b"%d" % number for number in range(10)])
    async with following(stub, 3) as stream:
        await stream.has([b"0", b"1", b"2"])
        first, *_ = stream.answers
        await ack(stub, first.lease, [first.messages[0].id])
        await stream.has([b"0", b"1", b"2", b"3"])
        for answer in list(stream.answers):
            await ack(stub, answer.lease)
        await stream.has([b"0", b"1", b"2", b"3", b"4", b"5", b"6"])


async def test_what_was_given_back_makes_room_for_others(stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    async with following(stub, 1) as stream:
        await stream.has([b"1"])
        await stub.NackMessage(nack(stream.answers[0].lease, delay=Duration(seconds=600)))
        await stream.has([b"1", b"2"])


async def test_what_comes_to_its_deadline_makes_room_and_comes_again(running: GrpcNode, stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    async with following(stub, 1) as stream:
        await stream.has([b"1"])
        lease = stream.answers[0].lease
        request = pb.ExtendLeaseRequest(destination="orders", subscription="billing", lease=lease)
        request.duration.FromMilliseconds(50)
        await stub.ExtendLease(request)
        await stream.has([b"1", b"2"])
        error = await refusal(
            stub.AckMessage(pb.AckMessageRequest(destination="orders", subscription="billing", lease=lease))
        )
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert metadata(error)["sealane-error"] == "LeaseLost"


async def test_what_is_settled_by_a_seek_makes_room(running: GrpcNode, stub: Any) -> None:
    await send_all(stub, [b"1", b"2", b"3"])
    async with following(stub, 2) as stream, in_process(running.node) as lane:
        await stream.has([b"1", b"2"])
        await lane.seek("orders", "billing", {0: 2})
        await stream.has([b"1", b"2", b"3"])


async def test_arrow_is_followed_in_the_same_way(stub: Any) -> None:
    await send_all(stub, [b"%d" % number for number in range(5)])
    call = stub.PullBatches(wish(3, follow=True))
    first = await call.read()
    await ack(stub, first.lease)
    second = await call.read()
    assert first.lease != second.lease
    call.cancel()


async def test_partitions_share_what_may_be_open(running: GrpcNode, stub: Any) -> None:
    async with in_process(running.node) as lane:
        await lane.create_topic("orders", partitions=4)
        for number in range(40):
            await lane.publish("orders", b"%d" % number, key=b"%d" % number)
    async with following(stub, 5) as stream:
        found: list[bytes] = []
        while len(found) < 40:
            await eventually(lambda: bool(stream.answers))
            assert len(stream.payloads) <= 5
            found += payloads([answer := stream.answers.pop(0)])
            await ack(stub, answer.lease)
    assert len(set(found)) == 40


async def test_leaving_gives_back_what_was_not_written_and_keeps_the_rest_leased(running: GrpcNode, stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    async with following(stub, 10) as stream:
        await stream.has([b"1", b"2"])
    await eventually(lambda: len(running.door._stays) == 0)
    await stub.SendMessage(sent(b"3"))
    assert payloads(await pull(stub)) == [b"3"], "leases do not end with the stream"
    await ack(stub, stream.answers[0].lease)


async def test_a_client_that_does_not_read_holds_up_nobody_else(running: GrpcNode, stub: Any) -> None:
    """What it is not sent goes back when it leaves, and no attempt counts."""
    count = 60
    await send_all(stub, [bytes([number]) * (600 << 10) for number in range(count)])
    async with client(running.address) as sleepy:
        call = sleepy.PullMessages(wish(count, follow=True))
        first = await call.read()
        await stub.SendMessage(sent(b"of someone else", "elsewhere"), timeout=DEADLINE_SECONDS)
        call.cancel()
    await eventually(lambda: len(running.door._stays) == 0)
    left = await pull(stub, count, wait=0.5)
    assert len(left) > 1
    assert len(payloads(left)) >= count // 2, "most of it never left the node"
    assert {message.retries for message in messages(left)} == {0}
    assert not {message.id for message in first.messages} & {message.id for message in messages(left)}


@pytest.mark.parametrize("gone", ["topic", "subscription"])
@pytest.mark.parametrize("waiting", ["for messages", "for room"])
async def test_it_ends_with_what_it_follows(running: GrpcNode, stub: Any, gone: str, waiting: str) -> None:
    await stub.SendMessage(sent(b"1"))
    async with following(stub, 1 if waiting == "for room" else 2) as stream, in_process(running.node) as lane:
        await stream.has([b"1"])
        await (lane.delete_topic("orders") if gone == "topic" else lane.unsubscribe("orders", "billing"))
        error = await stream.end()
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert await lane.topics() == ([] if gone == "topic" else ["default/orders"]), "and is not made anew by that"


async def test_a_thousand_messages_one_by_one(stub: Any) -> None:
    async with following(stub, 50) as stream:
        sending = asyncio.create_task(send_all(stub, [b"%d" % number for number in range(1_000)]))
        done = 0
        while done < 1_000:
            await eventually(lambda: len(stream.answers) > 0)
            answer = stream.answers.pop(0)
            await ack(stub, answer.lease)
            done += len(answer.messages)
        await sending
        assert await pull(stub) == []
