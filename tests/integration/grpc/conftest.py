"""A node with its grpc door, in this process, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import grpc
import pytest

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.swarmmq_pb2_grpc import SwarmMQStub
from tests.grpc_node import GrpcNode, client, grpc_node
from tests.integration.native.conftest import no_stray_errors

__all__ = ["no_stray_errors"]

DEADLINE_SECONDS = 60.0


@pytest.fixture
async def running(no_stray_errors: None) -> AsyncIterator[GrpcNode]:
    async with grpc_node() as started:
        yield started


@pytest.fixture
async def stub(running: GrpcNode) -> AsyncIterator[Any]:
    async with client(running.address) as opened:
        yield opened


def sent(payload: bytes, destination: str = "orders", **fields: Any) -> pb.SendMessageRequest:
    return pb.SendMessageRequest(message=pb.Message(destination=destination, payload=payload, **fields))


async def send_all(stub: Any, payloads: Iterable[bytes], destination: str = "orders", **fields: Any) -> None:
    requests = [sent(payload, destination, **fields) for payload in payloads]
    answers = [answer async for answer in stub.SendMessages(requests, timeout=DEADLINE_SECONDS)]
    assert len(answers) == len(requests)


def wish(max_messages: int = 0, wait: float = 0, **fields: Any) -> pb.PullMessagesRequest:
    """What to pull: of the usual topic for the usual subscription."""
    found = pb.PullMessagesRequest(
        **{"destination": "orders", "subscription": "billing", "max_messages": max_messages, **fields}
    )
    if wait:
        found.wait.FromMilliseconds(round(wait * 1e3))
    return found


async def pull(stub: Any, *args: Any, **fields: Any) -> list[pb.PullMessagesResponse]:
    """Until the stream ends by itself."""
    return [answer async for answer in stub.PullMessages(wish(*args, **fields), timeout=DEADLINE_SECONDS)]


def messages(answers: Sequence[pb.PullMessagesResponse]) -> list[pb.Message]:
    return [message for answer in answers for message in answer.messages]


def payloads(answers: Sequence[pb.PullMessagesResponse]) -> list[bytes]:
    return [message.payload for message in messages(answers)]


async def ack(stub: Any, lease: str, ids: Sequence[str] = ()) -> None:
    request = pb.AckMessageRequest(destination="orders", subscription="billing", lease=lease, ids=ids)
    await stub.AckMessage(request, timeout=DEADLINE_SECONDS)


async def refusal(call: Any) -> grpc.aio.AioRpcError:
    """What a call or a stream ends with."""
    return (await until_refused(call))[1]


async def sent_ahead(running: GrpcNode, method: str, requests: Sequence[Any]) -> tuple[list[Any], Any]:
    """All that a stream has answered before it ended with an error, and that, where it ends before it has read all."""
    return await blocking(running, lambda opened: getattr(SwarmMQStub(opened), method)(iter(requests)))


async def blocking(running: GrpcNode, called: Callable[[Any], Iterable[Any]]) -> tuple[list[Any], Any]:
    """The same of any call, by a client that blocks: the other one makes an error of its own of a request that is too
    late to be sent.
    """

    def talk() -> tuple[list[Any], Any]:
        answers: list[Any] = []
        with grpc.insecure_channel(running.address, [("grpc.use_local_subchannel_pool", 1)]) as opened:
            try:
                for answer in called(opened):
                    answers.append(answer)
            except grpc.RpcError as error:
                return answers, error
        pytest.fail(f"it was not refused, but answered: {answers}")

    return await asyncio.wait_for(asyncio.to_thread(talk), DEADLINE_SECONDS)


async def until_refused(call: Any) -> tuple[list[Any], grpc.aio.AioRpcError]:
    """All that a stream has answered before it ended with an error, and that."""
    answers: list[Any] = []
    try:
        if not hasattr(call, "__aiter__"):
            answers.append(await call)
        else:
            async for answer in call:
                answers.append(answer)
    except grpc.aio.AioRpcError as error:
        return answers, error
    pytest.fail(f"it was not refused, but answered: {answers}")


def metadata(error: grpc.aio.AioRpcError) -> dict[str, str]:
    return dict(error.trailing_metadata())
