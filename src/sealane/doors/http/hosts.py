"""Under which names a node without authentication answers: those of this machine's loopback alone.

A page on the web can have its own name lead to 127.0.0.1 after it was loaded, and talk to whatever listens there. Where
everyone who connects is the admin, the name in the request is the only thing that gives such a page away.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from sealane.doors.http.problem import Problem


class LoopbackHosts:
    """Answers 421 to requests that were meant for another host."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        if is_loopback(host):
            await self._app(scope, receive, send)
            return
        problem = f"this node has no authentication and answers to localhost only, not to {host[:128]!r}"
        await Problem(421, problem, headers={"connection": "close"})(scope, receive, send)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a `Host` names this machine's loopback, with a port or without."""
    name = host.strip()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
