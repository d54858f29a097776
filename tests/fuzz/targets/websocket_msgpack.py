"""What a client says over a WebSocket, in MessagePack."""

from __future__ import annotations

from sealane.doors.http.websocket.formats import MESSAGEPACK
from tests.fuzz.said_over_websocket import PACKED_REQUESTS, understood
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_msgpack

TARGET = Target(
    "websocket_msgpack",
    tuple(MESSAGEPACK.encode(request) for request in PACKED_REQUESTS),
    lambda data: understood(MESSAGEPACK, data),
    spoil_msgpack(),
)
