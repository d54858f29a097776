"""Everything that this door can be asked: each method of each service, and who serves it."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from sealane.doors.grpc import reflecting, settling
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.calls import Calls
from sealane.doors.grpc.health import Health
from sealane.doors.grpc.publishing import Publishing
from sealane.doors.grpc.pulling import Pulling
from sealane.doors.grpc.reflecting import Reflection
from sealane.doors.grpc.room import Room
from sealane.doors.grpc.sending import Sending
from sealane.doors.grpc.settings import GrpcDoorSettings

SWARMMQ = pb.DESCRIPTOR.services_by_name["SwarmMQ"].full_name
HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name


def handlers(calls: Calls, room: Room, settings: GrpcDoorSettings, node_id: str, health: Health) -> list[Any]:
    """For gRPC's server. In `room` is all that was published and is not answered yet."""
    sending = Sending(room, settings.in_flight_bytes_max)
    publishing = Publishing(room, settings.in_flight_bytes_max)
    pulling = Pulling(node_id)
    reflection = Reflection([SWARMMQ, HEALTH, *reflecting.SERVICES])
    methods = {
        SWARMMQ: {
            "SendMessage": calls.unary(sending.send_message, pb.SendMessageRequest),
            "SendMessages": calls.stream(sending.send_messages, pb.SendMessageRequest),
            "PullMessages": calls.stream(pulling.pull_messages, pb.PullMessagesRequest),
            "AckMessage": calls.unary(settling.ack_message, pb.AckMessageRequest),
            "NackMessage": calls.unary(settling.nack_message, pb.NackMessageRequest),
            "ExtendLease": calls.unary(settling.extend_lease, pb.ExtendLeaseRequest),
            "PublishBatches": calls.stream(publishing.publish_batches, pb.PublishBatchRequest),
            "PullBatches": calls.stream(pulling.pull_batches, pb.PullMessagesRequest),
            "GetNodeHealth": calls.public_unary(health.node_health, pb.HealthRequest),
        },
        HEALTH: {
            "Check": calls.public_unary(health.check, health_pb2.HealthCheckRequest),
            "Watch": calls.public_stream(health.watch, health_pb2.HealthCheckRequest),
        },
        **{
            service: {"ServerReflectionInfo": calls.stream(reflection.tell, ServerReflectionRequest)}
            for service in reflecting.SERVICES
        },
    }
    return [grpc.method_handlers_generic_handler(service, served) for service, served in methods.items()]
