"""Answering for what was pulled: by who shows the lease, durably, and as often as they like."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from sealane.client.embedded import in_process
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.settling import IDS_MAX
from sealane.node.attachment import REASON_CHARS_MAX
from tests.grpc_node import GrpcNode, client, grpc_node
from tests.integration.grpc.conftest import ack, messages, metadata, payloads, pull, refusal, send_all, sent

OF_THE_LEASE: dict[str, Any] = {"destination": "orders", "subscription": "billing"}


def nack(lease: str, **fields: Any) -> pb.NackMessageRequest:
    return pb.NackMessageRequest(**OF_THE_LEASE, lease=lease, **fields)


def extend(lease: str, seconds: float) -> pb.ExtendLeaseRequest:
    request = pb.ExtendLeaseRequest(**OF_THE_LEASE, lease=lease)
    request.duration.FromMilliseconds(round(seconds * 1e3))
    return request


async def depth(running: GrpcNode) -> int:
    async with in_process(running.node) as lane:
        (subscription,) = (await lane.describe_topic("orders")).subscriptions
        return subscription.depth


async def test_all_of_a_lease_or_some_of_it_is_settled(running: GrpcNode, stub: Any) -> None:
    await send_all(stub, [b"1", b"2", b"3"])
    (answer,) = await pull(stub)
    await ack(stub, answer.lease, [answer.messages[1].id])
    assert await depth(running) == 2
    await ack(stub, answer.lease)
    assert await depth(running) == 0


async def test_settling_twice_is_no_error(stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    (answer,) = await pull(stub)
    for _ in range(2):
        await ack(stub, answer.lease, [answer.messages[0].id])
    for _ in range(2):
        await ack(stub, answer.lease)


async def test_what_is_given_back_comes_again_when_it_was_said(stub: Any) -> None:
    await send_all(stub, [b"1", b"2"])
    (answer,) = await pull(stub)
    await stub.NackMessage(nack(answer.lease, ids=[answer.messages[0].id], delay=Duration(seconds=3600)))
    await stub.NackMessage(nack(answer.lease, delay=Duration()))
    again = messages(await pull(stub))
    assert [(message.payload, message.retries) for message in again] == [(b"2", 1)]


async def test_without_a_delay_the_back_off_of_the_subscription_decides(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    await stub.NackMessage(nack(answer.lease))
    assert await pull(stub) == []
    assert payloads(await pull(stub, 1, wait=30)) == [b"1"]


async def test_the_last_reason_goes_with_the_message_to_the_dead_letters(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    for _ in range(16):
        (answer,) = await pull(stub, 1, wait=30)
        await stub.NackMessage(nack(answer.lease, delay=Duration(), reason="no such customer"))
    (dead,) = messages(await pull(stub, 1, wait=30, destination="orders.billing.dead"))
    assert dead.payload == b"1"
    assert "no such customer" in dead.headers.values()


async def test_a_lease_is_kept_for_longer(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    extended = await stub.ExtendLease(extend(answer.lease, 600))
    assert extended.deadline.ToSeconds() == pytest.approx(time.time() + 600, abs=30)
    assert extended.deadline.ToMilliseconds() > answer.deadline.ToMilliseconds()


async def test_a_lease_that_is_over_is_lost(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    await stub.ExtendLease(extend(answer.lease, 0.05))
    assert payloads(await pull(stub, 1, wait=30)) == [b"1"]
    for call in (
        stub.AckMessage(pb.AckMessageRequest(**OF_THE_LEASE, lease=answer.lease)),
        stub.NackMessage(nack(answer.lease)),
        stub.ExtendLease(extend(answer.lease, 10)),
    ):
        error = await refusal(call)
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert metadata(error) == {"sealane-error": "LeaseLost"}


@pytest.mark.parametrize(
    ("fields", "status", "problem"),
    [
        ({"lease": "nonsense"}, grpc.StatusCode.INVALID_ARGUMENT, "lease"),
        ({"lease": ""}, grpc.StatusCode.INVALID_ARGUMENT, "lease"),
        ({"ids": ["not a uuid"]}, grpc.StatusCode.INVALID_ARGUMENT, "ids"),
        ({"ids": [str(uuid4())]}, grpc.StatusCode.INVALID_ARGUMENT, "not a message of this lease"),
        ({"destination": "elsewhere"}, grpc.StatusCode.NOT_FOUND, "topic"),
        ({"subscription": "other"}, grpc.StatusCode.NOT_FOUND, "subscription"),
    ],
)
async def test_what_cannot_be_answered_for_is_refused(
    stub: Any, fields: dict[str, Any], status: grpc.StatusCode, problem: str
) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    given = {**OF_THE_LEASE, "lease": answer.lease, **fields}
    for call in (stub.AckMessage(pb.AckMessageRequest(**given)), stub.NackMessage(pb.NackMessageRequest(**given))):
        error = await refusal(call)
        assert (error.code(), problem in error.details()) == (status, True), error.details()
    await ack(stub, answer.lease)


@pytest.mark.parametrize("seconds", [0, -1, 1_000_000])
async def test_a_lease_cannot_be_kept_for_ever(stub: Any, seconds: float) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    error = await refusal(stub.ExtendLease(extend(answer.lease, seconds)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_reason_has_a_limit(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    error = await refusal(stub.NackMessage(nack(answer.lease, reason="x" * (REASON_CHARS_MAX + 1))))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    await stub.NackMessage(nack(answer.lease, reason="x" * REASON_CHARS_MAX))


async def test_ids_have_a_limit(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    (answer,) = await pull(stub)
    ids = [answer.messages[0].id] * IDS_MAX
    error = await refusal(stub.AckMessage(pb.AckMessageRequest(**OF_THE_LEASE, lease=answer.lease, ids=[*ids, ids[0]])))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "there are 10,001, the limit is 10,000" in error.details()
    await ack(stub, answer.lease, ids)


async def test_a_lease_outlives_the_node(tmp_path: Path, no_stray_errors: None) -> None:
    async with grpc_node(tmp_path) as running, client(running.address) as stub:
        await send_all(stub, [b"1", b"2"])
        (answer,) = await pull(stub)
        await ack(stub, answer.lease, [answer.messages[0].id])
    async with grpc_node(tmp_path) as running, client(running.address) as stub:
        assert await pull(stub) == [], "it is still leased"
        await stub.ExtendLease(extend(answer.lease, 60))
        await ack(stub, answer.lease)
        assert await depth(running) == 0
