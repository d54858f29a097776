"""What is refused: in words that help, counted, and at nobody else's cost."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.client.embedded import in_process
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.service import SWARMMQ
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.doors.grpc.statuses import DETAIL_CHARS_MAX
from sealane.errors import Unauthenticated
from sealane.security.grants.grants import Grant
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from tests.grpc_node import GrpcNode, channel, client, grpc_node
from tests.integration.grpc.conftest import (
    DEADLINE_SECONDS,
    blocking,
    metadata,
    payloads,
    pull,
    refusal,
    sent,
    sent_ahead,
    wish,
)
from tests.integration.grpc.test_publishing_batches import arrow
from tests.integration.native.conftest import eventually

METHODS = pb.DESCRIPTOR.services_by_name["SwarmMQ"].methods
NEEDS_CREDENTIAL = [method.name for method in METHODS if method.name != "GetNodeHealth"]


def raw(opened: Any, method: str, service: str = SWARMMQ) -> Any:
    """A method whose requests are bytes, as they are."""
    return opened.stream_stream(f"/{service}/{method}")


async def nobody(shown: Introduction) -> Principal:
    raise Unauthenticated("who are you?")


@pytest.mark.parametrize("method", NEEDS_CREDENTIAL)
async def test_every_method_but_health_needs_to_know_who_asks(method: str) -> None:
    async with grpc_node(authenticate=nobody) as running:
        not_read = [b"\xff before that is known"]
        _, error = await blocking(running, lambda opened: raw(opened, method)(iter(not_read)))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        assert metadata(error) == {"sealane-error": "Unauthenticated"}
        assert running.node.measures.refusals["Unauthenticated"] == 1


@pytest.mark.parametrize("method", [method.name for method in METHODS])
async def test_bytes_that_are_no_request_are_refused(running: GrpcNode, method: str) -> None:
    async with channel(running.address) as opened:
        error = await refusal(raw(opened, method)([b"\xff\xff\xff\xff"]))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "its bytes are no " in error.details()


@pytest.mark.parametrize("method", ["SendMessage", "PullMessages", "AckMessage", "GetNodeHealth"])
async def test_a_call_without_a_request_is_refused(running: GrpcNode, method: str) -> None:
    async with channel(running.address) as opened:
        error = await refusal(raw(opened, method)([]))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "there is none" in error.details()


async def test_a_stream_without_a_request_is_fine(stub: Any) -> None:
    assert [answer async for answer in stub.SendMessages([])] == []
    assert [answer async for answer in stub.PublishBatches([])] == []


async def test_a_method_that_does_not_exist_is_unimplemented(running: GrpcNode) -> None:
    _, error = await blocking(running, lambda opened: raw(opened, "DropEverything")(iter([b""])))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_whoever_may_not_is_told_so_and_it_is_counted() -> None:
    async def anna(shown: Introduction) -> Principal:
        return Principal("anna", "shop")

    async with grpc_node(authenticate=anna) as running, client(running.address) as stub:
        await running.node.identity.grants.add(Grant("anna", "publish", "shop/orders"))
        await stub.SendMessage(sent(b"1"))
        requests = [sent(b"2"), sent(b"3", "bank/accounts"), sent(b"4")]
        answers, error = await sent_ahead(running, "SendMessages", requests)
        assert len(answers) == 1
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert error.details() == "'anna' may not publish 'bank/accounts': it has no grant for that"
        for call in (stub.PullMessages(wish()), stub.PullBatches(wish(follow=True))):
            assert "'anna' may not consume 'shop/orders'" in (await refusal(call)).details()
        assert running.node.measures.refusals["Forbidden"] == 3


async def test_a_request_that_is_too_large_is_refused_and_the_connection_goes_on() -> None:
    door = GrpcDoorSettings(port=0, request_bytes_max=100_000)
    async with grpc_node(door=door) as running, client(running.address) as stub:
        await stub.SendMessage(sent(bytes(99_000)))
        for call in (stub.SendMessage(sent(bytes(100_001))), stub.SendMessages([sent(bytes(100_001))])):
            assert (await refusal(call)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(payloads(await pull(stub))) == 1


async def test_a_full_batch_fits_into_a_request(stub: Any) -> None:
    await stub.SendMessage(sent(bytes(1 << 20)))


async def test_metadata_that_is_too_large_is_refused() -> None:
    door = GrpcDoorSettings(port=0, metadata_bytes_max=4_096)
    async with grpc_node(door=door) as running, client(running.address) as stub:
        await stub.GetNodeHealth(pb.HealthRequest(), metadata=[("x", "a" * 2_000)])
        error = await refusal(stub.GetNodeHealth(pb.HealthRequest(), metadata=[("x", "a" * 100_000)]))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_nothing_compressed_is_taken(running: GrpcNode) -> None:
    """A few kilobytes could become gigabytes."""
    async with client(running.address) as stub:
        error = await refusal(stub.SendMessage(sent(bytes(100_000)), compression=grpc.Compression.Gzip))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        await stub.SendMessage(sent(b"1"))
        assert payloads(await pull(stub)) == [b"1"]


async def test_what_nobody_expected_tells_nothing_of_the_inside(no_stray_errors: None) -> None:
    async def broken(shown: Introduction) -> Principal:
        raise ZeroDivisionError("a secret")

    async with grpc_node(authenticate=broken) as running, client(running.address) as stub:
        error = await refusal(stub.SendMessage(sent(b"1")))
        assert error.code() is grpc.StatusCode.INTERNAL
        assert error.details() == "the node failed unexpectedly at this call; its log tells more"
        assert metadata(error) == {}
        assert [type(crash) for crash in running.crashes] == [ZeroDivisionError], "and it is heard of"
        running.crashes.clear()


async def test_a_long_text_is_cut(stub: Any) -> None:
    error = await refusal(stub.PullMessages(wish(destination="x" * 100_000 + "/orders", subscription="!" * 100_000)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(error.details()) <= DETAIL_CHARS_MAX


async def test_one_call_too_many_is_refused_and_others_go_on() -> None:
    door = GrpcDoorSettings(port=0, calls_max=2)
    async with grpc_node(door=door) as running, client(running.address) as stub:
        first, second = stub.SendMessages(), stub.SendMessages()
        for call in (first, second):
            await call.write(sent(b"1"))
            await call.read()
        error = await refusal(stub.SendMessage(sent(b"2")))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()
        await eventually(lambda: len(running.door._stays) == 1)
        await stub.SendMessage(sent(b"3"))
        second.cancel()


async def test_a_client_with_many_calls_at_a_time_waits_for_its_own() -> None:
    door = GrpcDoorSettings(port=0, calls_per_connection_max=4)
    async with grpc_node(door=door) as running, client(running.address) as stub:
        calls = [stub.SendMessages() for _ in range(4)]
        for call in calls:
            await call.write(sent(b"1"))
            await call.read()
        waiting = asyncio.ensure_future(stub.SendMessage(sent(b"2"), timeout=DEADLINE_SECONDS))
        async with client(running.address) as other:
            await other.SendMessage(sent(b"3"))
        assert not waiting.done()
        calls[0].cancel()
        await waiting
        for call in calls:
            call.cancel()


VALID = {
    "SendMessage": sent(b"1", key=b"k", headers={"a": "b"}, priority=3),
    "PullMessages": wish(3),
    "AckMessage": pb.AckMessageRequest(destination="orders", subscription="billing", lease="x", ids=["y"]),
    "NackMessage": pb.NackMessageRequest(destination="orders", subscription="billing", lease="x", reason="z"),
    "ExtendLease": pb.ExtendLeaseRequest(destination="orders", subscription="billing", lease="x"),
    "PublishBatches": pb.PublishBatchRequest(destination="orders", arrow=arrow({"payload": [b"1", b"2"]})),
    "GetNodeHealth": pb.HealthRequest(),
}
VALID |= {"SendMessages": VALID["SendMessage"], "PullBatches": VALID["PullMessages"]}
REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}


@st.composite
def hostile(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A method, and requests: of any bytes, or of a good one of which some were changed."""
    method = draw(st.sampled_from(sorted(VALID)))
    good = bytearray(VALID[method].SerializeToString())
    for _ in range(draw(st.integers(0, 4)) if good else 0):
        good[draw(st.integers(0, len(good) - 1))] = draw(st.integers(0, 255))
    return method, draw(st.lists(st.one_of(st.just(bytes(good)), st.binary(max_size=100)), max_size=3))


@settings(max_examples=100)
@given(hostile())
def test_whatever_bytes_come_the_node_goes_on(asked: tuple[str, list[bytes]]) -> None:
    method, requests = asked

    async def tried() -> None:
        async with grpc_node() as running, channel(running.address) as opened:
            found = {grpc.StatusCode.OK}
            try:
                async for _ in raw(opened, method)(requests, timeout=1):
                    pass
            except grpc.aio.AioRpcError as error:
                # A client says this by itself when it was answered before it has sent all of its requests.
                if error.details() != "Internal error from Core":
                    found = {error.code()}
            # Some of them ask for a stream that goes on.
            assert found <= {*REFUSED, grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}

    asyncio.run(tried())


@given(data=st.binary(min_size=1, max_size=300))
@settings(max_examples=30)
def test_whatever_comes_instead_of_http2_ends_that_connection_alone(data: bytes) -> None:
    async def tried() -> None:
        async with grpc_node() as running, client(running.address) as neighbour:
            host, _, port = running.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(data)
            writer.write_eof()
            async with asyncio.timeout(DEADLINE_SECONDS):
                await reader.read()
            writer.close()
            await neighbour.SendMessage(sent(b"1"))
            async with in_process(running.node) as lane:
                assert await lane.topics() == ["default/orders"]

    asyncio.run(tried())
