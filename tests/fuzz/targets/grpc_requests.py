"""Requests of the gRPC door, in protobuf. The first byte says which method they are for."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message

from sealane.doors.arrow_streams import read_batches
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.messages import row_of, seconds_of
from sealane.doors.grpc.settling import _ids
from sealane.doors.grpc.statuses import told
from sealane.errors import SealaneError
from sealane.message import Limits
from sealane.node.outgoing import Outgoing
from sealane.node.surroundings import Surroundings
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.targets.arrow_stream import SEEDS as STREAMS

OUTGOING = Outgoing(Limits(), Surroundings(lambda: 1_760_000_000_123_456, bytes))
_KINDS: tuple[type[Message], ...] = (
    pb.SendMessageRequest,
    pb.PullMessagesRequest,
    pb.AckMessageRequest,
    pb.NackMessageRequest,
    pb.ExtendLeaseRequest,
    pb.PublishBatchRequest,
)
_ID = str(UUID(int=7))
_REQUESTS: tuple[Message, ...] = (
    pb.SendMessageRequest(message=pb.Message(destination="orders", payload=b"x")),
    pb.SendMessageRequest(
        message=pb.Message(
            id=_ID,
            destination="orders",
            payload=b"hello",
            checksum="2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            key=b"k",
            headers={"region": "eu"},
            priority=7,
            ttl=Duration(seconds=60),
            delay=Duration(nanos=500_000_000),
        )
    ),
    pb.PullMessagesRequest(destination="orders", subscription="s", max_messages=10, wait=Duration(seconds=1)),
    pb.AckMessageRequest(destination="orders", subscription="s", lease="x", ids=[_ID, _ID]),
    pb.NackMessageRequest(destination="orders", subscription="s", lease="x", delay=Duration(seconds=1), reason="why"),
    pb.ExtendLeaseRequest(destination="orders", subscription="s", lease="x", duration=Duration(seconds=9)),
    pb.PublishBatchRequest(destination="orders", arrow=STREAMS[0]),
)
SEEDS = tuple(bytes([_KINDS.index(type(each))]) + each.SerializeToString() for each in _REQUESTS)


def check(data: bytes) -> bool:
    kind = _KINDS[data[0] % len(_KINDS)] if data else _KINDS[0]
    try:
        request = kind.FromString(data[1:])
    except DecodeError:
        return False
    try:
        _take(request)
    except SealaneError as error:
        _, text, metadata = told(error)
        assert all(value.isascii() for _, value in metadata)
        text.encode()
        return False
    return True


def _take(request: Any) -> None:
    """As the methods do, up to where the node begins. Raises `SealaneError`."""
    match request:
        case pb.SendMessageRequest():
            batch = OUTGOING.build([row_of(request.message, OUTGOING)])
            batch.records.validate(full=True)
        case pb.PublishBatchRequest():
            for batch in read_batches(request.arrow, OUTGOING.surroundings.stamp(), limits=OUTGOING.limits):
                batch.records.validate(full=True)
        case pb.AckMessageRequest():
            _ids(request.ids)
        case pb.NackMessageRequest():
            _ids(request.ids)
            assert isinstance(seconds_of(request.delay), float)
        case pb.PullMessagesRequest():
            assert isinstance(seconds_of(request.wait), float)
        case pb.ExtendLeaseRequest():
            assert isinstance(seconds_of(request.duration), float)


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Sometimes one field has another value, and the rest is sound."""
    if not data or choose.random() < 0.5:
        return mutate(data, choose)
    try:
        request: Any = _KINDS[data[0] % len(_KINDS)].FromString(data[1:])
    except DecodeError:
        return mutate(data, choose)
    message = request.message if isinstance(request, pb.SendMessageRequest) else request
    field = choose.choice(list(message.DESCRIPTOR.fields))
    try:
        _change(message, field, choose)
    except (TypeError, ValueError, AttributeError):
        return mutate(data, choose)
    return data[:1] + bytes(request.SerializeToString())


def _change(message: Any, field: Any, choose: random.Random) -> None:
    match field.cpp_type:
        case field.CPPTYPE_STRING if not field.is_repeated:
            is_text = field.type == field.TYPE_STRING
            value = getattr(message, field.name)
            changed = mutate(value.encode() if is_text else value or b"x", choose)
            setattr(message, field.name, changed.decode(errors="replace") if is_text else changed)
        case field.CPPTYPE_INT32 | field.CPPTYPE_INT64:
            setattr(message, field.name, choose.choice((0, 1, -1, 11, 2**31 - 1, -(2**31))))
        case field.CPPTYPE_MESSAGE if not field.is_repeated:
            inner = getattr(message, field.name)
            inner.seconds = choose.choice((0, -1, 1, 2**63 - 1, -(2**63), 315_576_000_000, 3_153_600_000))
            inner.nanos = choose.choice((0, -1, 999_999_999, 2**31 - 1, -(2**31)))
        case _:
            raise ValueError


TARGET = Target("grpc_requests", SEEDS, check, spoil)
