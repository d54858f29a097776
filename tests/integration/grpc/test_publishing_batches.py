"""Messages that come as Arrow: many at a time, with many under way."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import grpc
import pyarrow as pa
import pytest

from sealane.client.embedded import in_process
from sealane.doors.grpc import swarmmq_pb2 as pb
from tests.grpc_node import GrpcNode
from tests.integration.grpc.conftest import messages, payloads, pull, refusal, sent_ahead


def arrow(*batches: Any) -> bytes:
    """An IPC stream of record batches, or of mappings of columns."""
    records = [batch if isinstance(batch, pa.RecordBatch) else pa.RecordBatch.from_pydict(batch) for batch in batches]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records[0].schema) as stream:
        for each in records:
            stream.write_batch(each)
    return sink.getvalue().to_pybytes()


def published(*batches: Any, destination: str = "orders") -> pb.PublishBatchRequest:
    return pb.PublishBatchRequest(destination=destination, arrow=arrow(*batches))


def numbered(start: int, stop: int) -> dict[str, list[bytes]]:
    return {"payload": [b"%d" % number for number in range(start, stop)]}


def places(answer: pb.PublishBatchResponse) -> list[tuple[int, int, int]]:
    return [(placed.partition, placed.first_offset, placed.count) for placed in answer.placed]


async def test_each_request_is_answered_with_where_its_messages_are(stub: Any) -> None:
    requests = [published(numbered(start, start + 100)) for start in range(0, 1_000, 100)]
    answers = [answer async for answer in stub.PublishBatches(requests)]
    assert [answer.messages for answer in answers] == [100] * 10
    assert [places(answer) for answer in answers] == [[(0, start, 100)] for start in range(0, 1_000, 100)]
    assert payloads(await pull(stub, 1_000)) == numbered(0, 1_000)["payload"]


async def test_a_request_may_have_several_batches_and_all_columns_of_a_message(stub: Any) -> None:
    ids = [uuid4(), uuid4()]
    columns = {
        "id": pa.array([each.bytes for each in ids], pa.binary(16)),
        "key": [b"a", None],
        "payload": [b"1", b"2"],
        "headers": pa.array([[("region", "eu")], None], pa.map_(pa.string(), pa.string())),
        "priority": pa.array([9, None], pa.int8()),
        "envelope": [b"sealed", None],
    }
    record = pa.RecordBatch.from_pydict(columns)
    (answer,) = [each async for each in stub.PublishBatches([published(record.slice(0, 1), record.slice(1, 1))])]
    assert answer.messages == 2
    first, second = messages(await pull(stub))
    assert [UUID(first.id), UUID(second.id)] == ids
    assert (first.key, first.priority, dict(first.headers), first.envelope) == (b"a", 9, {"region": "eu"}, b"sealed")
    assert (second.key, second.priority, dict(second.headers), second.envelope) == (b"", 5, {}, b"")
    assert first.producer_id == "admin"


async def test_messages_spread_over_partitions_are_told_partition_by_partition(running: GrpcNode, stub: Any) -> None:
    async with in_process(running.node) as lane:
        await lane.create_topic("orders", partitions=3)
    keys = [b"%d" % (number % 7) for number in range(70)]
    record = {"payload": [b"x"] * 70, "key": keys}
    (answer,) = [each async for each in stub.PublishBatches([published(record)])]
    assert sum(placed.count for placed in answer.placed) == answer.messages == 70
    assert {placed.partition for placed in answer.placed} <= {0, 1, 2}


async def test_messages_that_were_there_before_are_told_where_they_are(stub: Any) -> None:
    ids = [uuid4().bytes for _ in range(4)]

    def of(*chosen: int) -> pb.PublishBatchRequest:
        return published(
            {"id": pa.array([ids[each] for each in chosen], pa.binary(16)), "payload": [b"x"] * len(chosen)}
        )

    answers = [each async for each in stub.PublishBatches([of(0, 1, 2), of(2, 3, 0)])]
    assert [places(answer) for answer in answers] == [[(0, 0, 3)], [(0, 2, 2), (0, 0, 1)]]
    assert len(payloads(await pull(stub))) == 4


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "batch refused"),
        (b"hello", "batch refused"),
        (arrow({"payload": pa.array([], pa.binary())}), "no messages"),
        (arrow({"payload": [b"x"], "colour": ["red"]}), "colour"),
        (arrow({"key": [b"x"]}), "payload"),
        (arrow({"payload": [1]}), "payload"),
        (arrow({"payload": [bytes((1 << 20) + 1)]}), "the limit is 1,048,576"),
    ],
)
async def test_what_is_no_batch_is_refused_and_those_before_it_are_stored(
    running: GrpcNode, stub: Any, data: bytes, problem: str
) -> None:
    requests = [published(numbered(0, 3)), pb.PublishBatchRequest(destination="orders", arrow=data)]
    answers, error = await sent_ahead(running, "PublishBatches", [*requests, published(numbered(3, 6))])
    assert [answer.messages for answer in answers] == [3]
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert problem in error.details()
    assert payloads(await pull(stub)) == [b"0", b"1", b"2"]


async def test_nothing_behind_a_batch_that_is_refused_is_stored(running: GrpcNode, stub: Any) -> None:
    async with in_process(running.node) as lane:
        await lane.create_topic("orders", messages_max=10)
        assert await pull(stub) == []
    requests = [published(numbered(0, 5)), published(numbered(5, 20)), published(numbered(20, 21))]
    answers, error = await sent_ahead(running, "PublishBatches", requests)
    assert [answer.messages for answer in answers] == [5]
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert payloads(await pull(stub)) == numbered(0, 5)["payload"]


async def test_a_name_that_cannot_be_is_refused(stub: Any) -> None:
    error = await refusal(stub.PublishBatches([published(numbered(0, 1), destination="no such name!")]))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
