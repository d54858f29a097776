"""Every request has an id: the client's own if it gives one, else one of ours. It is in the answer, and in problems."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID_CHARS_MAX = 128
"""A client's own id goes into logs: long enough for a UUID or a trace, and nothing that needs quoting."""

_HEADER = b"x-request-id"
_ALLOWED = re.compile(rb"[A-Za-z0-9._:/+=-]{1,%d}" % REQUEST_ID_CHARS_MAX)
_PLACE = "request_id"


class RequestIds:
    """Gives each request its id, and lets the answer repeat it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Told apart from those of other processes by its beginning, and within this one by counting.
        self._own = os.urandom(6).hex()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        own = given if _ALLOWED.fullmatch(given) else f"{self._own}-{next(self._numbers):x}".encode()
        scope["state"][_PLACE] = own.decode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (_HEADER, own)]
            await send(message)

        await self._app(scope, receive, send_with_id)


def request_id_of(scope: Mapping[str, Any]) -> str | None:
    """None outside of a request that has passed here."""
    found = scope.get("state", {}).get(_PLACE)
    return found if isinstance(found, str) else None
