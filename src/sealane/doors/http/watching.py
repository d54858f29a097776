"""The routes of those who watch a node, as its API describes them.

What answers is in the application's state and not around these functions: FastAPI keeps the last thousands that it has
looked at, and would keep the whole node with them.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from sealane.doors.http.api.describing import answers
from sealane.doors.http.watched import Watching

watching_routes = APIRouter(default_response_class=JSONResponse)


def _watching(request: Request) -> Watching:
    watching: Watching = request.app.state.watching
    return watching


@watching_routes.get("/", include_in_schema=False)
async def root(request: Request) -> Response:
    return await _watching(request).root(request)


@watching_routes.get("/healthz", tags=["operations"], summary="Whether the process is alive, and can go on")
async def healthz(request: Request) -> Response:
    return await _watching(request).healthz(request)


@watching_routes.get("/ready", tags=["operations"], summary="Whether the node serves, and if not, why")
async def ready(request: Request) -> Response:
    return await _watching(request).ready(request)


@watching_routes.get(
    "/metrics",
    tags=["operations"],
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses=answers(200, also=()),
)
async def metrics(request: Request) -> Response:
    return await _watching(request).metrics(request)
