"""Taking messages: under leases that end at their deadlines, in answers that every client takes."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import grpc
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.duration_pb2 import Duration

from sealane.client.embedded import in_process
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.node.pulling.pull import PULL_MESSAGES_MAX, PULL_WAIT_SECONDS_MAX
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


async def test_without_a_wait_it_is_what_is_there(stub: Any) -> None:
    assert await pull(stub) == []
    await send_all(stub, [b"1", b"2", b"3"])
    answers = await pull(stub)
    assert payloads(answers) == [b"1", b"2", b"3"]
    assert await pull(stub) == [], "they are leased"


async def test_it_ends_after_as_many_as_were_asked_for(stub: Any) -> None:
    await send_all(stub, [b"%d" % number for number in range(250)])
    assert len(payloads(await pull(stub))) == 100, "which is what not saying it means"
    assert len(payloads(await pull(stub, 120))) == 120
    assert len(payloads(await pull(stub, 1_000))) == 30


async def test_whoever_waits_has_a_message_as_soon_as_it_is_sent(stub: Any) -> None:
    waiting = asyncio.create_task(pull(stub, 1, wait=60))
    await stub.SendMessage(sent(b"1"))
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert payloads(await waiting) == [b"1"]


async def test_it_ends_when_none_has_come_for_as_long_as_was_waited(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    assert payloads(await pull(stub, 10, wait=0.3)) == [b"1"]


async def test_a_deadline_of_the_client_ends_its_call_and_nothing_is_lost(running: GrpcNode, stub: Any) -> None:
    error = await refusal(stub.PullMessages(wish(wait=60), timeout=0.2))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await eventually(lambda: len(running.door._stays) == 0)
    await stub.SendMessage(sent(b"1"))
    assert payloads(await pull(stub)) == [b"1"]


async def test_a_message_that_failed_comes_with_how_often(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    for failures in range(3):
        (answer,) = await pull(stub, 1, wait=30)
        assert [message.retries for message in answer.messages] == [failures]
        await stub.NackMessage(
            pb.NackMessageRequest(destination="orders", subscription="billing", lease=answer.lease, delay=Duration())
        )


async def test_large_messages_come_in_answers_that_every_client_takes(stub: Any) -> None:
    """Clients of gRPC refuse more than 4 MiB unless they are told otherwise. Each answer has a lease of its own."""
    given = [bytes([number]) * (700 << 10) for number in range(20)]
    await send_all(stub, given)
    answers = await pull(stub, 100, wait=0.1)
    assert payloads(answers) == given
    assert max(answer.ByteSize() for answer in answers) < 4 << 20
    assert len({answer.lease for answer in answers}) == len(answers) > 4
    await ack(stub, answers[0].lease)
    left = [message.payload for answer in answers[1:] for message in answer.messages]
    await stub.NackMessage(
        pb.NackMessageRequest(
            destination="orders", subscription="billing", lease=answers[1].lease, delay=Duration(seconds=0)
        )
    )
    again = await pull(stub, len(answers[1].messages), wait=10)
    assert set(payloads(again)) <= set(left), "the first answer's are settled, and those alone"
    assert [message.retries for message in messages(again)] == [1] * len(answers[1].messages)


async def test_arrow_has_the_columns_of_a_message_and_where_it_is(stub: Any) -> None:
    await send_all(stub, [b"1", b"2"], headers={"region": "eu"})
    (answer,) = [each async for each in stub.PullBatches(wish())]
    table = pa.ipc.open_stream(answer.arrow).read_all()
    assert table.column("payload").to_pylist() == [b"1", b"2"]
    assert table.column("headers").to_pylist() == [[("region", "eu")]] * 2
    places = table.select(["partition", "offset", "attempt"]).to_pydict()
    assert places == {"partition": [0, 0], "offset": [0, 1], "attempt": [1, 1]}
    await ack(stub, answer.lease, [str(UUID(bytes=table.column("id")[0].as_py()))])
    assert await pull(stub) == []


async def test_many_messages_are_pulled_as_arrow_in_few_answers(stub: Any) -> None:
    count = 20_000
    record = pa.RecordBatch.from_pydict({"payload": [b"%d" % number for number in range(count)]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema) as stream:
        stream.write_batch(record)
    requests = [pb.PublishBatchRequest(destination="orders", arrow=sink.getvalue().to_pybytes())]
    assert [each.messages async for each in stub.PublishBatches(requests)] == [count]
    offsets: list[int] = []
    answers = 0
    while len(offsets) < count:
        async for answer in stub.PullBatches(wish(10_000)):
            table = pa.ipc.open_stream(answer.arrow).read_all()
            offsets += table.column("offset").to_pylist()
            answers += 1
            await ack(stub, answer.lease)
    assert np.array_equal(offsets, np.arange(count))
    assert answers < 20


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"max_messages": PULL_MESSAGES_MAX + 1}, "max_messages: 10,001 is not in 1 to 10,000"),
        ({"max_messages": -1}, "max_messages: -1 is not in 1 to 10,000"),
        ({"wait": PULL_WAIT_SECONDS_MAX + 1}, "wait: 61 is not in 0 to 60 seconds"),
        ({"destination": "no name!"}, "topic name"),
        ({"subscription": ""}, "subscription name"),
    ],
)
@pytest.mark.parametrize("method", ["PullMessages", "PullBatches"])
async def test_what_cannot_be_pulled_is_refused(stub: Any, method: str, fields: dict[str, Any], problem: str) -> None:
    error = await refusal(getattr(stub, method)(wish(**fields)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert problem in error.details()


async def test_the_most_that_may_be_asked_for_may_be_asked_for(stub: Any) -> None:
    await stub.SendMessage(sent(b"1"))
    assert payloads(await pull(stub, PULL_MESSAGES_MAX)) == [b"1"]


async def test_a_broadcast_cannot_be_pulled(running: GrpcNode, stub: Any) -> None:
    async with in_process(running.node) as lane:
        await lane.publish("orders", b"1")
        async for _ in lane.consume("orders", "billing", mode="broadcast"):
            error = await refusal(stub.PullMessages(wish()))
            break
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert metadata(error)["sealane-error"] == "ModeConflict"


async def test_two_takers_of_a_subscription_share_its_messages(running: GrpcNode, stub: Any) -> None:
    await send_all(stub, [b"%d" % number for number in range(100)])
    async with client(running.address) as other:
        one, two = await asyncio.gather(pull(stub, 50), pull(other, 50))
    assert sorted(payloads(one) + payloads(two), key=int) == [b"%d" % number for number in range(100)]


async def test_a_client_that_goes_away_in_the_middle_gives_back_what_it_was_not_sent(
    running: GrpcNode, stub: Any
) -> None:
    """What waited to be written goes to others at once, and no attempt counts."""
    given = [bytes([number % 256]) * (1 << 20) for number in range(40)]
    await send_all(stub, given)
    async with client(running.address, **{"http2.lookahead_bytes": 0}) as slow:
        call = slow.PullMessages(wish(1_000))
        first = await call.read()
        call.cancel()
    await eventually(lambda: len(running.door._stays) == 0)
    others = await pull(stub, 1_000, wait=0.5)
    assert len(first.messages) + len(payloads(others)) >= 30
    assert {message.retries for message in messages(others)} == {0}
