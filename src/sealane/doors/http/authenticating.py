"""Who makes a request: its connection's certificate and its `Authorization`, introduced at the gate."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

from sealane.doors.http.connection import CERTIFICATE
from sealane.errors import Unauthenticated
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.credentials.key_text import KEY_PREFIX
from sealane.security.introductions import Introduction

DOOR = "http"


async def session_of(request: Request) -> Session:
    """The session of whoever makes this request. Raises `Unauthenticated`, which is answered with 401."""
    gate: Gate | None = request.app.state.gate
    if gate is None:
        raise HTTPException(503, "the node is starting; try again soon", {"retry-after": "1"})
    return await gate.enter(introduction(request))


def introduction(request: Request) -> Introduction:
    """What the request shows of who makes it. Raises `Unauthenticated` if that cannot be read."""
    shown = credentials_of(request.headers.get("authorization"))
    address = request.client.host if request.client is not None else ""
    return Introduction(shown, getattr(request.state, CERTIFICATE, None), address, DOOR)


def credentials_of(authorization: str | None) -> dict[str, Any] | None:
    """`Bearer` and an API key or a token, or `Basic` and a user's name and password. Nothing of it is in an error."""
    if authorization is None:
        return None
    scheme, _, value = authorization.partition(" ")
    match scheme.lower():
        case "bearer" if value.strip().startswith(KEY_PREFIX):
            return {"key": value.strip()}
        case "bearer":
            return {"token": value.strip()}
        case "basic":
            return _user_and_password(value)
    raise Unauthenticated("the Authorization header is neither Bearer (an API key or a token) nor Basic")


def _user_and_password(value: str) -> dict[str, Any]:
    try:
        user, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user = colon = password = ""
    if not colon:
        raise Unauthenticated("the Authorization header is Basic, but not user:password in base64")
    return {"user": user, "password": password}
