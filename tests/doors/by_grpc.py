"""By gRPC: message by message, and as Arrow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import grpc
import pyarrow as pa

from sealane.delivery.config import Mode
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.door import GrpcDoor
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.doors.grpc.swarmmq_pb2_grpc import SwarmMQStub
from sealane.message import SCHEMA
from sealane.node.gate import Gate
from tests.doors.node import ManyDoors
from tests.doors.speaking import Given, Refused, Taken
from tests.grpc_node import client

WAIT = timedelta(seconds=20)


@contextmanager
def refused() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        kind = dict(error.trailing_metadata())["sealane-error"]
        code = re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower()
        raise Refused(code, error.details()) from None


class GrpcSpeaker:
    abilities = frozenset[str]()

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        requests = [pb.SendMessageRequest(message=message_of(topic, each)) for each in messages]
        with refused():
            if len(requests) == 1:
                return [(await self._stub.SendMessage(requests[0])).id]
            return [answer.id async for answer in self._stub.SendMessages(requests)]

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        wish = pb.PullMessagesRequest(destination=topic, subscription=subscription, max_messages=count, wait=WAIT)
        with refused():
            return [
                taken_of(message, answer.lease)
                async for answer in self._stub.PullMessages(wish)
                for message in answer.messages
            ]

    async def ack(self, topic: str, subscription: str, taken: Sequence[Taken]) -> None:
        with refused():
            for lease, ids in _by_lease(taken):
                await self._stub.AckMessage(
                    pb.AckMessageRequest(destination=topic, subscription=subscription, lease=lease, ids=ids)
                )

    async def nack(
        self, topic: str, subscription: str, taken: Sequence[Taken], *, delay: float | None, reason: str | None
    ) -> None:
        pause = None if delay is None else timedelta(seconds=delay)
        with refused():
            for lease, ids in _by_lease(taken):
                await self._stub.NackMessage(
                    pb.NackMessageRequest(
                        destination=topic, subscription=subscription, lease=lease, ids=ids, delay=pause, reason=reason
                    )
                )

    async def extend(self, topic: str, subscription: str, taken: Sequence[Taken], seconds: float) -> None:
        with refused():
            for lease, _ in _by_lease(taken):
                await self._stub.ExtendLease(
                    pb.ExtendLeaseRequest(
                        destination=topic, subscription=subscription, lease=lease, duration=timedelta(seconds=seconds)
                    )
                )

    async def transact(
        self, name: str, publishes: dict[str, list[Given]], acks: Sequence[tuple[str, str, Sequence[Taken]]]
    ) -> None:
        raise NotImplementedError("gRPC has no transactions")


class ArrowSpeaker(GrpcSpeaker):
    def __init__(self, stub: Any, address: str) -> None:
        super().__init__(stub)
        self._address = address

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        """With ids of its own, since the answer to Arrow has none."""
        ids = [each.id or str(uuid4()) for each in messages]
        request = pb.PublishBatchRequest(destination=topic, arrow=_arrow(messages, ids))
        with refused():
            assert await asyncio.to_thread(self._publish, request) == [len(messages)]
        return ids

    def _publish(self, request: pb.PublishBatchRequest) -> list[int]:
        """By a client that blocks: the other one makes an error of its own of a request that is too late to be sent."""
        with grpc.insecure_channel(self._address) as channel:
            return [answer.messages for answer in SwarmMQStub(channel).PublishBatches(iter([request]))]

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        wish = pb.PullMessagesRequest(destination=topic, subscription=subscription, max_messages=count, wait=WAIT)
        with refused():
            return [
                _taken_of_row(row, answer.lease)
                async for answer in self._stub.PullBatches(wish)
                for row in pa.ipc.open_stream(answer.arrow).read_all().to_pylist()
            ]


def message_of(topic: str, given: Given) -> pb.Message:
    return pb.Message(
        destination=topic,
        payload=given.payload,
        key=given.key,
        headers=given.headers,
        priority=given.priority,
        ttl=None if given.ttl is None else timedelta(seconds=given.ttl),
        delay=timedelta(seconds=given.delay),
        id=given.id,
    )


def taken_of(message: pb.Message, lease: str) -> Taken:
    return Taken(
        message.id,
        message.payload,
        message.key or None,
        dict(message.headers),
        message.priority,
        message.retries + 1,
        message.offset,
        lease,
    )


def _taken_of_row(row: dict[str, Any], lease: str) -> Taken:
    identity = str(UUID(bytes=row["id"]))
    headers = dict(row["headers"] or ())
    return Taken(identity, row["payload"], row["key"], headers, row["priority"], row["attempt"], row["offset"], lease)


def _arrow(messages: Sequence[Given], ids: Sequence[str]) -> bytes:
    now = datetime.now(UTC)
    rows = [
        {
            "id": UUID(identity).bytes,
            "payload": each.payload,
            "key": each.key,
            "headers": list(each.headers.items()),
            "priority": each.priority,
            "expires": None if each.ttl is None else now + timedelta(seconds=each.ttl),
            "deliver_at": now + timedelta(seconds=each.delay) if each.delay else None,
        }
        for each, identity in zip(messages, ids, strict=True)
    ]
    schema = pa.schema([field for field in SCHEMA if field.name in rows[0]])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()


def _by_lease(taken: Sequence[Taken]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for each in taken:
        found.setdefault(each.hold, []).append(each.id)
    return list(found.items())


@asynccontextmanager
async def by_grpc(doors: ManyDoors, *, arrow: bool = False) -> AsyncIterator[GrpcSpeaker]:
    gate = Gate(doors.node, doors.authenticate)
    door = GrpcDoor(gate, GrpcDoorSettings(port=0), node_id="node", problems=list)
    try:
        await door.start()
        async with client(door.address) as stub:
            yield ArrowSpeaker(stub, door.address) if arrow else GrpcSpeaker(stub)
    finally:
        await door.close()


by_grpc_arrow = partial(by_grpc, arrow=True)
