"""Who makes a request: its connection's certificate and its `Authorization`, introduced at the gate."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

from sealane.doors.http.connection import CERTIFICATE, KNOWN
from sealane.errors import Unauthenticated
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.credentials.key_text import KEY_PREFIX
from sealane.security.introductions import Introduction

DOOR = "http"
KNOWN_SECONDS = 30.0
"""So long nobody is asked again by the same connection; another password or other roles hold after it."""
KNOWN_MAX = 16
"""Different credentials that one connection may show at a time: a proxy may bring the requests of many."""


async def session_of(request: Request) -> Session:
    """The session of whoever makes this request. Raises `Unauthenticated`, which is answered with 401.

    Who has shown the same by the same connection a moment ago is not asked to prove it again: a password takes a tenth
    of a second to check. Whether what they came in by is over is asked with each of their commands all the same.
    """
    gate: Gate | None = request.app.state.gate
    if gate is None:
        raise HTTPException(503, "the node is starting; try again soon", {"retry-after": "1"})
    known: dict[bytes, tuple[Session, float]] = getattr(request.state, KNOWN)
    shown = hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
    now = asyncio.get_running_loop().time()
    session, since = known.get(shown, (None, 0.0))
    if session is None or now - since > KNOWN_SECONDS:
        if len(known) >= KNOWN_MAX:
            known.clear()
        session = await gate.enter(introduction(request))
        known[shown] = session, now
    return session


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
