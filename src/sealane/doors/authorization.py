"""What an `Authorization` says: by the doors whose clients show their credential with each call."""

from __future__ import annotations

import base64
from typing import Any

from sealane.errors import Unauthenticated
from sealane.security.credentials.key_text import KEY_PREFIX


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
    except ValueError:  # It is no base64, not even ASCII, or no text.
        user = colon = password = ""
    if not colon:
        raise Unauthenticated("the Authorization header is Basic, but not user:password in base64")
    return {"user": user, "password": password}
