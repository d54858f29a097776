"""The API, loaded when somebody first asks for it.

It takes half of a node's start and a tenth of its memory, and many nodes are never asked for anything by HTTP but
whether they are well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.datastructures import State
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sealane.doors.http.watched import Watching


class LaterApi:
    """Tells those who watch at once. `load` makes the rest, on a thread, given what routes find as `app.state`."""

    def __init__(self, watching: Watching, load: Callable[[State], ASGIApp]) -> None:
        self.state = State({"gate": None, "draining": None})
        self._load = load
        self._loading: asyncio.Future[ASGIApp] | None = None
        self._api: ASGIApp | None = None
        self._prompt = {"/": watching.root, "/healthz": watching.healthz, "/ready": watching.ready}
        if watching.metrics_public:
            self._prompt["/metrics"] = watching.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self._prompt_answer(scope) or self._api or await self._loaded()
        await app(scope, receive, send)

    async def _prompt_answer(self, scope: Scope) -> ASGIApp | None:
        answer = self._prompt.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if answer is None:
            return None
        try:
            return await answer(Request(scope))
        except Exception:
            return None  # The API comes to the same end, and knows how to tell it.

    async def _loaded(self) -> ASGIApp:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load, self.state))
        # Whoever asked first may go away; others wait for the same.
        self._api = await asyncio.shield(self._loading)
        return self._api
