"""Who makes a request: its connection's certificate and its `Authorization`, introduced at the gate."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sealane.doors.authorization import credentials_of
from sealane.doors.http.connection import CALLERS, CERTIFICATE
from sealane.doors.known_callers import KnownCallers
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.introductions import Introduction

DOOR = "http"


async def session_of(request: Request) -> Session:
    """The session of whoever makes this request. Raises `Unauthenticated`, which is answered with 401."""
    gate: Gate | None = request.app.state.gate
    if gate is None:
        raise HTTPException(503, "the node is starting; try again soon", {"retry-after": "1"})
    callers: KnownCallers = getattr(request.state, CALLERS)
    return await callers.session(gate, request.headers.get("authorization"), introduction(request))


def introduction(request: Request) -> Introduction:
    """What the request shows of who makes it. Raises `Unauthenticated` if that cannot be read."""
    shown = credentials_of(request.headers.get("authorization"))
    address = request.client.host if request.client is not None else ""
    return Introduction(shown, getattr(request.state, CERTIFICATE, None), address, DOOR)
