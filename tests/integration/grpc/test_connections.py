"""Connections: counted, bounded, and closed where they are no use."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import grpc
import pytest

from sealane.client import Lane
from sealane.client.embedded import InProcessBroker
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.passages import FIRST_BYTES_MAX
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.errors import InvalidArgument
from sealane.node import NodeSettings
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quota, Subject
from sealane.security.settings import QuotaSettings, SecuritySettings
from tests.grpc_node import GrpcNode, channel, client, grpc_node
from tests.integration.grpc.conftest import DEADLINE_SECONDS, ack, metadata, refusal, sent, wish
from tests.integration.native.conftest import eventually


async def test_connections_are_counted_while_they_are_there(running: GrpcNode) -> None:
    assert running.door.connections == 0
    async with client(running.address) as one, client(running.address) as two:
        await one.SendMessage(sent(b"1"))
        await two.SendMessage(sent(b"2"))
        assert running.door.connections == 2
        assert running.node.entrances.connections_from("127.0.0.1") == 2
    await eventually(lambda: running.door.connections == 0)
    assert running.node.entrances.connections_from("127.0.0.1") == 0


async def test_one_connection_too_many_is_closed_and_its_client_knows() -> None:
    async with grpc_node(door=GrpcDoorSettings(port=0, connections_max=1)) as running:
        async with client(running.address) as one, client(running.address) as two:
            await one.SendMessage(sent(b"1"))
            error = await refusal(two.SendMessage(sent(b"2")))
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            await one.SendMessage(sent(b"3"))
        await eventually(lambda: running.door.connections == 0)
        async with client(running.address) as three:
            await three.SendMessage(sent(b"4"))


async def test_one_address_has_as_many_as_the_quota_allows() -> None:
    settings = NodeSettings(security=SecuritySettings(quotas=QuotaSettings(connections_per_address_max=2)))
    async with grpc_node(settings=settings) as running:
        async with client(running.address) as one, client(running.address) as two, client(running.address) as three:
            await one.SendMessage(sent(b"1"))
            await two.SendMessage(sent(b"2"))
            assert (await refusal(three.SendMessage(sent(b"3")))).code() is grpc.StatusCode.UNAVAILABLE
        assert running.node.measures.connections_refused["address"] >= 1


async def test_streams_count_as_connections_of_their_principal(running: GrpcNode, stub: Any) -> None:
    quotas = running.node.identity.quotas
    await quotas.set(Subject("principal", "admin"), Quota(connections_max=1), running.node.measures.now())
    first = stub.PullMessages(wish(follow=True))
    await eventually(lambda: running.node.entrances.connections_of("admin") == 1)
    error = await refusal(stub.PullMessages(wish(follow=True)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert metadata(error) == {"sealane-error": "TooManyConnections", "retry-after": "1.000"}
    await stub.SendMessage(sent(b"1"))
    first.cancel()
    await eventually(lambda: running.node.entrances.connections_of("admin") == 0)


async def test_a_quota_that_is_used_up_says_when_to_come_back_and_a_stream_just_waits(
    running: GrpcNode, stub: Any
) -> None:
    call = stub.PullMessages(wish(1, follow=True))
    await stub.SendMessage(sent(b"1"))
    first = await call.read()
    quotas = running.node.identity.quotas
    await quotas.set(Subject("principal", "admin"), Quota(requests_per_second=1), running.node.measures.now())
    while True:
        try:
            await ack(stub, first.lease)
        except grpc.aio.AioRpcError as refused:
            error = refused
            break
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert metadata(error)["sealane-error"] == "RateLimited"
    assert 0 < float(metadata(error)["retry-after"]) <= 1
    async with Lane(InProcessBroker(running.node, Principal("other", roles=frozenset({"admin"})))) as other:
        await other.publish("orders", b"2")
    second = await asyncio.wait_for(call.read(), DEADLINE_SECONDS)
    assert [message.payload for message in second.messages] == [b"2"]
    call.cancel()


async def test_who_says_nothing_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealane.doors.grpc.door.PREFACE_SECONDS", 0.2)
    async with grpc_node() as running:
        host, _, port = running.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(DEADLINE_SECONDS):
            await reader.read()
        writer.close()
        await eventually(lambda: running.door.connections == 0)


async def test_a_connection_without_calls_is_closed_and_opened_again_by_its_client() -> None:
    door = GrpcDoorSettings(port=0, idle_seconds=0.3)
    async with grpc_node(door=door) as running, client(running.address) as stub:
        await stub.SendMessage(sent(b"1"))
        await eventually(lambda: running.door.connections == 0)
        await stub.SendMessage(sent(b"2"))


async def test_whoever_finds_the_inner_socket_is_nobody(running: GrpcNode) -> None:
    """It is for the owner of this process alone; and who comes there by itself has come by no door."""
    async with channel(f"unix:{running.door._entry.path}") as opened:
        call = opened.unary_unary("/swarmmq.v1.SwarmMQ/SendMessage")
        error = await refusal(call(sent(b"1").SerializeToString()))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED


def frame(kind: int, content: bytes = b"") -> bytes:
    """Of HTTP/2, on the connection as a whole."""
    return len(content).to_bytes(3, "big") + bytes([kind, 0, 0, 0, 0, 0]) + content


async def test_what_comes_before_the_passage_is_open_is_not_lost_however_much_it_is(running: GrpcNode) -> None:
    """Frames of a kind that nobody knows, which are to be ignored, and then a ping."""
    settings, unknown, ping = 0x4, 0xFA, 0x6
    much = frame(unknown, bytes(16_000)) * (4 * FIRST_BYTES_MAX // 16_000)
    gone = socket.create_connection(("127.0.0.1", int(running.address.rpartition(":")[2])))
    reader, writer = await asyncio.open_connection(sock=gone)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings) + much + frame(ping, b"are you?"))
    heard = b""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while b"are you?" not in heard:
            heard += await reader.read(1 << 16)
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_vanishes_in_the_middle_is_cleared_up_behind(running: GrpcNode, stub: Any) -> None:
    gone = socket.create_connection(("127.0.0.1", int(running.address.rpartition(":")[2])))
    gone.sendall(b"PRI * HTTP")
    await eventually(lambda: running.door.connections == 1)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    gone.close()
    await eventually(lambda: running.door.connections == 0)
    await stub.GetNodeHealth(pb.HealthRequest())


@pytest.mark.parametrize(
    "name",
    [
        "connections_max",
        "calls_max",
        "calls_per_connection_max",
        "request_bytes_max",
        "metadata_bytes_max",
        "in_flight_bytes_max",
        "in_flight_bytes_total_max",
        "keepalive_seconds",
        "idle_seconds",
    ],
)
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"doors\.grpc\.{name}"):
        replace(GrpcDoorSettings(), **{name: 0})  # type: ignore[arg-type]
