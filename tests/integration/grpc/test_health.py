"""Health and reflection: what load balancers and tools ask, without a stub of ours."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2 as reflection
from grpc_reflection.v1alpha import reflection_pb2_grpc

from sealane._version import __version__
from sealane.doors.grpc import reflecting
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.service import HEALTH, SWARMMQ
from sealane.errors import Unauthenticated
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from tests.grpc_node import NODE_ID, GrpcNode, channel, client, grpc_node
from tests.integration.grpc.conftest import DEADLINE_SECONDS, blocking, refusal

Status = health_pb2.HealthCheckResponse


async def test_a_node_that_serves_says_so(stub: Any) -> None:
    told = await stub.GetNodeHealth(pb.HealthRequest())
    assert (told.status, told.node_id, told.version) == (pb.HealthResponse.SERVING, NODE_ID, __version__)
    assert list(told.problems) == []
    assert told.uptime.ToNanoseconds() > 0


async def test_a_node_that_does_not_serve_says_why(running: GrpcNode, stub: Any) -> None:
    running.problems.append("the disk is full")
    told = await stub.GetNodeHealth(pb.HealthRequest())
    assert (told.status, list(told.problems)) == (pb.HealthResponse.NOT_SERVING, ["the disk is full"])


@pytest.mark.parametrize("service", ["", SWARMMQ])
async def test_the_health_service_follows_readiness(running: GrpcNode, service: str) -> None:
    async with channel(running.address) as opened:
        health = health_pb2_grpc.HealthStub(opened)
        asked = health_pb2.HealthCheckRequest(service=service)
        watch = health.Watch(asked, timeout=DEADLINE_SECONDS)
        assert (await watch.read()).status == Status.SERVING
        assert (await health.Check(asked)).status == Status.SERVING
        running.problems.append("the disk is full")
        assert (await health.Check(asked)).status == Status.NOT_SERVING
        assert (await watch.read()).status == Status.NOT_SERVING
        running.problems.clear()
        assert (await watch.read()).status == Status.SERVING
        watch.cancel()


async def test_of_a_service_that_is_not_there_nothing_is_told(running: GrpcNode) -> None:
    async with channel(running.address) as opened:
        health = health_pb2_grpc.HealthStub(opened)
        asked = health_pb2.HealthCheckRequest(service="other")
        assert (await refusal(health.Check(asked))).code() is grpc.StatusCode.NOT_FOUND
        watch = health.Watch(asked)
        assert (await watch.read()).status == Status.SERVICE_UNKNOWN
        watch.cancel()


async def test_health_is_for_everyone_and_reflection_is_not() -> None:
    async def nobody(shown: Introduction) -> Principal:
        raise Unauthenticated("who are you?")

    async with grpc_node(authenticate=nobody) as running, channel(running.address) as opened:
        asked = health_pb2.HealthCheckRequest()
        assert (await health_pb2_grpc.HealthStub(opened).Check(asked)).status == Status.SERVING
        async with client(running.address) as stub:
            assert (await stub.GetNodeHealth(pb.HealthRequest())).status == pb.HealthResponse.SERVING
        _, error = await blocking(
            running,
            lambda opened: reflection_pb2_grpc.ServerReflectionStub(opened).ServerReflectionInfo(iter([_listing()])),
        )
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED


def _listing() -> reflection.ServerReflectionRequest:
    return reflection.ServerReflectionRequest(list_services="")


@pytest.mark.parametrize("name", reflecting.SERVICES)
async def test_a_tool_learns_what_it_can_ask(running: GrpcNode, name: str) -> None:
    async with channel(running.address) as opened:
        call = opened.stream_stream(
            f"/{name}/ServerReflectionInfo",
            request_serializer=reflection.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection.ServerReflectionResponse.FromString,
        )
        asked = [
            _listing(),
            reflection.ServerReflectionRequest(file_containing_symbol=SWARMMQ),
            reflection.ServerReflectionRequest(file_containing_symbol="no.such.Thing"),
        ]
        listed, found, missing = [answer async for answer in call(asked)]
    services = [service.name for service in listed.list_services_response.service]
    assert services == sorted([SWARMMQ, HEALTH, *reflecting.SERVICES])
    files = [FileDescriptorProto.FromString(each) for each in found.file_descriptor_response.file_descriptor_proto]
    (service,) = next(file.service for file in files if file.package == "swarmmq.v1")
    assert [method.name for method in service.method] == [
        method.name for method in pb.DESCRIPTOR.services_by_name["SwarmMQ"].methods
    ]
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
