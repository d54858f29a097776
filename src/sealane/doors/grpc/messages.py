"""Messages as gRPC has them, from and to the rows of a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

import pyarrow as pa
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.errors import InvalidMessage
from sealane.message import PRIORITY_DEFAULT, Row
from sealane.message.schema import CREATED, ENVELOPE, EXPIRES, HEADERS, KEY, PRIORITY
from sealane.node.authors import author_of
from sealane.node.deliveries import Delivery, Part
from sealane.node.outgoing import Outgoing

_SECOND_US = 1_000_000


def row_of(message: pb.Message, outgoing: Outgoing) -> Row:
    """Raises `InvalidMessage`."""
    payload = message.payload
    if message.checksum and message.checksum.lower() != hashlib.sha256(payload).hexdigest():
        raise InvalidMessage("checksum", "is not the SHA-256 of the payload that came with it; send the message again")
    return outgoing.row(
        payload,
        key=message.key or None,
        headers=dict(message.headers) or None,
        priority=message.priority or PRIORITY_DEFAULT,
        ttl=seconds_of(message.ttl) if message.HasField("ttl") else None,
        delay=seconds_of(message.delay),
        id=message.id or None,
    )


def messages_of(delivery: Delivery, now_us: int, route: str) -> Iterator[pb.Message]:
    """The messages of a delivery; `route` is the node that they have passed."""
    for part in delivery.parts:
        yield from _messages(delivery, part, now_us, route)


def _messages(delivery: Delivery, part: Part, now_us: int, route: str) -> Iterator[pb.Message]:
    batch = part.batch
    absent = batch.absent
    created = batch.column(CREATED).view(pa.int64()).to_pylist()
    rows = zip(part.offsets, batch.ids(), batch.payloads(), created, strict=True)
    # Columns that say nothing, which are most of them, are not looked at.
    keys, headers, priorities, envelopes = (
        None if absent >> place & 1 else batch.column(place).to_pylist() for place in (KEY, HEADERS, PRIORITY, ENVELOPE)
    )
    expires = None if absent >> EXPIRES & 1 else batch.column(EXPIRES).view(pa.int64()).to_pylist()
    author = author_of(batch.meta)
    for place, (offset, identity, payload, created_us) in enumerate(rows):
        message = pb.Message(
            id=str(UUID(bytes=identity)),
            payload=payload,
            destination=delivery.topic,
            priority=PRIORITY_DEFAULT if priorities is None else priorities[place],
            timestamp=timestamp_of(created_us),
            producer_id=author,
            retries=_attempt(delivery, int(offset)) - 1,
            route_history=(route,),
            checksum=hashlib.sha256(payload).hexdigest(),
            key=None if keys is None else keys[place],
            headers=None if headers is None else dict(headers[place] or ()),
            partition=delivery.partition,
            offset=int(offset),
            envelope=batch.meta.envelope if envelopes is None else envelopes[place],
        )
        if expires is not None and expires[place] is not None:
            message.ttl.CopyFrom(duration_of(max(0, expires[place] - now_us)))
        yield message


def _attempt(delivery: Delivery, offset: int) -> int:
    return next((attempt for offsets, attempt in delivery.attempts if offset in offsets), 1)


def seconds_of(duration: Duration) -> float:
    """Without its limits: whoever uses it has narrower ones."""
    return duration.seconds + duration.nanos / 1e9


def duration_of(time_us: int) -> Duration:
    seconds, rest = divmod(time_us, _SECOND_US)
    return Duration(seconds=seconds, nanos=rest * 1_000)


def timestamp_of(time_us: int) -> Timestamp:
    seconds, rest = divmod(time_us, _SECOND_US)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)
