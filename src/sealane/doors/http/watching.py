"""What those who watch a node ask: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from sealane._version import __version__
from sealane.doors.http.api.describing import answers
from sealane.doors.http.authenticating import session_of
from sealane.doors.http.problems import Problem

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


def watching(watched: Watched, *, metrics_public: bool) -> APIRouter:
    """Whether a node is alive and ready is told to everyone."""
    routes = APIRouter(default_response_class=JSONResponse)

    @routes.get("/", include_in_schema=False)
    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(_PAGE)
        links = {"ready": "/ready", "health": "/healthz", "metrics": "/metrics", "openapi": "/openapi.json"}
        return JSONResponse({"name": "Sealane", "version": __version__, "links": links})

    @routes.get("/healthz", tags=["operations"], summary="Whether the process is alive, and can go on")
    async def healthz() -> Response:
        if not watched.live():
            return Problem(503, "the node cannot go on, and stops; its log has more")
        return JSONResponse({"status": "alive"})

    @routes.get("/ready", tags=["operations"], summary="Whether the node serves, and if not, why")
    async def ready() -> Response:
        problems = list(watched.problems())
        if problems:
            return Problem(503, "; ".join(problems), headers={"retry-after": "1"}, problems=problems)
        return JSONResponse({"status": "ready"})

    @routes.get(
        "/metrics",
        tags=["operations"],
        summary="Metrics for Prometheus",
        response_class=PlainTextResponse,
        responses=answers(200, also=()),
    )
    async def metrics(request: Request) -> Response:
        if not metrics_public:
            (await session_of(request)).authorise("consume", METRICS)
        content, media_type = watched.metrics()
        return Response(content, media_type=media_type)

    return routes
