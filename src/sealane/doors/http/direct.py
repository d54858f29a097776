"""A way past the router for what is asked most: publishing to a topic.

FastAPI and Starlette take longer to find and call a route than the node takes to store a message. The route is there
all the same, and describes it; this is the same function, called as soon as the path is known.
"""

from __future__ import annotations

import re

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sealane.doors.http.api.publishing import publish
from sealane.doors.http.problems import problem_from

_MESSAGES = re.compile(r"/api/v1/domains/(?P<domain>[^/]+)/topics/(?P<topic>[^/]+)/messages")


class DirectPublishing:
    """Answers what publishes, and passes everything else on."""

    def __init__(self, app: ASGIApp, api: FastAPI) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == "http" and scope["method"] == "POST":
            found = _MESSAGES.fullmatch(scope["path"])
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["app"] = self._api
        scope["path_params"] = found.groupdict()
        request = Request(scope, receive, send)
        try:
            response = await publish(request)
        except Exception as error:
            problem = await problem_from(request, error)
            await problem(scope, receive, send)
            if problem.status_code == 500:
                raise  # It is logged where every unexpected error of a request is.
            return
        await response(scope, receive, send)
