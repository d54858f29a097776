"""What those who watch a node ask, and what they are told: is it alive, is it ready, how is it doing.

They ask often, and of a node that may do nothing else by HTTP: their answers need none of the API's machinery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from sealane._version import __version__
from sealane.doors.http.authenticating import session_of
from sealane.doors.http.problem import Problem

METRICS = "_system/metrics"
"""What one may `consume` who may see the metrics."""

_PAGE = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sealane</title>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto">
<h1>Sealane {__version__}</h1>
<p>A message broker whose queues are tables. This is a node's http door.</p>
<ul><li><a href="/ready">/ready</a>: whether it serves, and if not, why</li>
<li><a href="/healthz">/healthz</a>: whether the process is alive</li>
<li><a href="/metrics">/metrics</a>: for Prometheus</li></ul>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the door is told about the node behind it."""

    live: Callable[[], bool]
    """False: it cannot go on, and whoever runs it should start it anew."""
    problems: Callable[[], Sequence[str]]
    """Why the node does not serve; nothing when it does."""
    metrics: Callable[[], tuple[bytes, str]]
    """The exposition, and its content type."""


class Watching:
    """The answers. The metrics are for those who may `consume` them, unless they are public."""

    def __init__(self, watched: Watched, *, metrics_public: bool) -> None:
        self._watched = watched
        self.metrics_public = metrics_public

    async def root(self, request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(_PAGE)
        links = {"ready": "/ready", "health": "/healthz", "metrics": "/metrics", "openapi": "/openapi.json"}
        return JSONResponse({"name": "Sealane", "version": __version__, "links": links})

    async def healthz(self, request: Request) -> Response:
        if not self._watched.live():
            return Problem(503, "the node cannot go on, and stops; its log has more")
        return JSONResponse({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        problems = list(self._watched.problems())
        if problems:
            return Problem(503, "; ".join(problems), headers={"retry-after": "1"}, problems=problems)
        return JSONResponse({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        if not self.metrics_public:
            (await session_of(request)).authorise("consume", METRICS)
        content, media_type = self._watched.metrics()
        return Response(content, media_type=media_type)
