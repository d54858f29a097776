"""What a client says over a WebSocket, in JSON."""

from __future__ import annotations

from sealane.doors.http.websocket.formats import JSON
from tests.fuzz.said_over_websocket import REQUESTS, understood
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

TARGET = Target(
    "websocket_json",
    tuple(JSON.encode(request) for request in REQUESTS),
    lambda data: understood(JSON, data),
    spoil_json(),
)
