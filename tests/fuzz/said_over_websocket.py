"""All that a client can say over a WebSocket, and what becomes of any bytes instead."""

from __future__ import annotations

import contextlib
import uuid

from sealane.doors.http.message_shape import GivenMessage, PackedMessage, batch_of
from sealane.doors.http.starts import start_of
from sealane.doors.http.websocket import messages as said
from sealane.doors.http.websocket.formats import Format, Unreadable
from sealane.doors.http.websocket.problem_documents import problem_document
from sealane.errors import SealaneError
from sealane.message import Limits
from sealane.node.outgoing import Outgoing
from sealane.node.surroundings import Surroundings

_OUTGOING = Outgoing(Limits(), Surroundings(lambda: 1_760_000_000_123_456, bytes))
_ID = uuid.UUID("019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718")

_COMMON: tuple[said.Request, ...] = (
    said.Hello(call=1, token="slk_x"),
    said.Subscribe(
        call=2,
        topic="orders",
        subscription="workers",
        mode="key-shared",
        start="latest",
        filter="key = 'x'",
        lease_seconds=10.0,
        retry=said.GivenRetry(kind="fixed", delay_seconds=1.0),
        credit=10,
    ),
    said.Subscribe(topic="default/orders", subscription="s", start="2026-05-04T10:00:00Z"),
    said.Credit(consumer=1, messages=10),
    said.Ack(call=3, consumer=1, delivery=2),
    said.Nack(call=4, consumer=1, ids=[_ID], delay=0.5, reason="why"),
    said.Extend(call=5, consumer=1, delivery=2, seconds=30.0),
    said.Unsubscribe(call=6, consumer=1),
    said.Ping(call=7),
)
REQUESTS = (
    *_COMMON,
    said.Publish(call=8, topic="orders", messages=[GivenMessage(payload="x"), GivenMessage(payload_base64="AA==")]),
)
PACKED_REQUESTS = (
    *_COMMON,
    said.PackedPublish(
        call=8, topic="orders", messages=[PackedMessage(payload=b"\0", key=b"k", headers={"a": "b"}, ttl=5.0, id=_ID)]
    ),
)


def understood(format: Format, data: bytes) -> bool:
    """Read it as a conversation does; what is refused can be told, under the number of its call."""
    try:
        request = format.read(data)
    except Unreadable:
        return False
    except SealaneError as error:
        with contextlib.suppress(Unreadable):
            call = format.call_of(data)
            assert isinstance(call, int)
            format.encode({"type": "error", "problem": problem_document(error), "call": call})
        return False
    try:
        match request:
            case said.Publish() | said.PackedPublish():
                batch_of(request.messages, _OUTGOING)
            case said.Subscribe():
                start_of(request.start)
    except SealaneError as error:
        format.encode({"type": "error", "problem": problem_document(error), "call": request.call})
        return False
    return True
