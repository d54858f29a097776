"""The routes of those who watch a node, as its API describes them."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse

from sealane.doors.http.api.describing import answers
from sealane.doors.http.watched import Watching


def watching_routes(watching: Watching) -> APIRouter:
    """Whether a node is alive and ready is told to everyone."""
    routes = APIRouter(default_response_class=JSONResponse)
    routes.get("/", include_in_schema=False)(watching.root)
    routes.get("/healthz", tags=["operations"], summary="Whether the process is alive, and can go on")(watching.healthz)
    routes.get("/ready", tags=["operations"], summary="Whether the node serves, and if not, why")(watching.ready)
    routes.get(
        "/metrics",
        tags=["operations"],
        summary="Metrics for Prometheus",
        response_class=PlainTextResponse,
        responses=answers(200, also=()),
    )(watching.metrics)
    return routes
