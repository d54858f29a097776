"""Answering for what was pulled: `AckMessage`, `NackMessage` and `ExtendLease`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.messages import seconds_of, timestamp_of
from sealane.errors import InvalidArgument
from sealane.node.pulling.held import Held
from sealane.node.session import Session

IDS_MAX = 10_000
"""Ids in one ack or nack: as many as a pull can have."""


async def ack_message(session: Session, request: pb.AckMessageRequest) -> pb.AckMessageResponse:
    await (await _held(session, request)).ack(_ids(request.ids))
    return pb.AckMessageResponse()


async def nack_message(session: Session, request: pb.NackMessageRequest) -> pb.NackMessageResponse:
    delay = seconds_of(request.delay) if request.HasField("delay") else None
    await (await _held(session, request)).nack(_ids(request.ids), delay=delay, reason=request.reason or None)
    return pb.NackMessageResponse()


async def extend_lease(session: Session, request: pb.ExtendLeaseRequest) -> pb.ExtendLeaseResponse:
    deadline_us = await (await _held(session, request)).extend(seconds_of(request.duration))
    return pb.ExtendLeaseResponse(deadline=timestamp_of(deadline_us))


async def _held(
    session: Session, request: pb.AckMessageRequest | pb.NackMessageRequest | pb.ExtendLeaseRequest
) -> Held:
    return await session.held(request.destination, request.subscription, request.lease)


def _ids(texts: Sequence[str]) -> list[UUID] | None:
    """None, which means all, if there are none."""
    if len(texts) > IDS_MAX:
        raise InvalidArgument("ids", f"there are {len(texts):,}, the limit is {IDS_MAX:,}")
    try:
        return [UUID(text) for text in texts] or None
    except ValueError:
        raise InvalidArgument("ids", "one of them is not a UUID") from None
