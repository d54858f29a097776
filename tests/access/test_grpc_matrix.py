"""Who may do what is the same by the grpc door: {role × method × domain}."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.protobuf.duration_pb2 import Duration

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.door import GrpcDoor
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.node.gate import Gate
from sealane.node.pulling.ticket import SECRET_BYTES, Ticket
from tests.access.commands import DEADLINE_SECONDS, Rule, everyone, needs
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import node_of_everyone
from tests.grpc_node import client

_NO_LEASE = Ticket(bytes(SECRET_BYTES), ()).text()


def _message(domain: str) -> pb.SendMessageRequest:
    return pb.SendMessageRequest(message=pb.Message(destination=f"{domain}/t", payload=b"x"))


def _arrow(domain: str) -> pb.PublishBatchRequest:
    records = pa.RecordBatch.from_pydict({"payload": [b"x"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    return pb.PublishBatchRequest(destination=f"{domain}/t", arrow=sink.getvalue().to_pybytes())


def _wish(domain: str) -> pb.PullMessagesRequest:
    return pb.PullMessagesRequest(destination=f"{domain}/t", subscription="pulling", max_messages=1)


def _leased(domain: str) -> dict[str, Any]:
    return {"destination": f"{domain}/t", "subscription": "pulling", "lease": _NO_LEASE}


METHODS: dict[str, tuple[Rule, Callable[[Any, str], Any]]] = {
    "SendMessage": (needs("publish"), lambda stub, domain: stub.SendMessage(_message(domain))),
    "SendMessages": (needs("publish"), lambda stub, domain: stub.SendMessages([_message(domain)])),
    "PublishBatches": (needs("publish"), lambda stub, domain: stub.PublishBatches([_arrow(domain)])),
    "PullMessages": (needs("consume"), lambda stub, domain: stub.PullMessages(_wish(domain))),
    "PullBatches": (needs("consume"), lambda stub, domain: stub.PullBatches(_wish(domain))),
    "AckMessage": (
        needs("consume"),
        lambda stub, domain: stub.AckMessage(pb.AckMessageRequest(**_leased(domain))),
    ),
    "NackMessage": (
        needs("consume"),
        lambda stub, domain: stub.NackMessage(pb.NackMessageRequest(**_leased(domain))),
    ),
    "ExtendLease": (
        needs("consume"),
        lambda stub, domain: stub.ExtendLease(pb.ExtendLeaseRequest(**_leased(domain), duration=Duration(seconds=1))),
    ),
    "GetNodeHealth": (everyone, lambda stub, domain: stub.GetNodeHealth(pb.HealthRequest())),
}


async def is_allowed(call: Any) -> bool:
    """Whether it ends well, or with an error about something else."""
    try:
        if hasattr(call, "__aiter__"):
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        if error.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INTERNAL):
            raise
        return error.code() is not grpc.StatusCode.PERMISSION_DENIED
    return True


@asynccontextmanager
async def grpc_stub(guests: Guests) -> AsyncIterator[Any]:
    async with node_of_everyone(guests) as node:
        gate = Gate(node.node, guests.authenticate)
        door = GrpcDoor(gate, GrpcDoorSettings(port=0), node_id="node", problems=list)
        try:
            await door.start()
            async with client(door.address) as stub:
                yield stub
        finally:
            await door.close()


async def _in_time(asking: Awaitable[bool]) -> bool:
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await asking


@pytest.mark.parametrize("who", PEOPLE)
async def test_the_verdict_on_every_method_is_that_of_the_table(who: str) -> None:
    person, guests = PEOPLE[who], Guests()
    async with grpc_stub(guests) as stub:
        guests.expected = person.principal(who)
        verdicts = {
            (name, domain): await _in_time(is_allowed(asked(stub, domain)))
            for name, (_, asked) in METHODS.items()
            for domain in (OWN, FOREIGN)
        }
    expected = {
        (name, domain): rule(person, domain) for name, (rule, _) in METHODS.items() for domain in (OWN, FOREIGN)
    }
    assert {place for place in verdicts if verdicts[place] != expected[place]} == set()


async def test_whoever_has_no_grant_cannot_tell_what_is_there_from_what_is_not() -> None:
    guests = Guests()
    async with grpc_stub(guests) as stub:
        guests.expected = PEOPLE["none"].principal("none")
        for name, (rule, asked) in METHODS.items():
            if rule is not everyone:
                assert not await _in_time(is_allowed(asked(stub, "no-such-domain"))), name


def test_every_method_of_the_service_has_a_row() -> None:
    assert set(METHODS) == {method.name for method in pb.DESCRIPTOR.services_by_name["SwarmMQ"].methods}
