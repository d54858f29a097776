"""The application behind the http door: its routes, and what holds for all of them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from sealane._version import __version__
from sealane.doors.http.api.describing import NAMED_SHAPES
from sealane.doors.http.api.idempotency import IdempotencyKeys
from sealane.doors.http.api.routes import api_routes
from sealane.doors.http.body_limit import BodyLimit
from sealane.doors.http.compression import PackedAnswers, UnpackedBodies
from sealane.doors.http.direct import DirectPublishing
from sealane.doors.http.docs_page import docs_routes
from sealane.doors.http.hosts import LoopbackHosts
from sealane.doors.http.problems import answer_with_problems
from sealane.doors.http.request_ids import RequestIds
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watching import Watched, watching

DESCRIPTION = """\
Topics, subscriptions and messages of one Sealane node. Whoever asks shows a client certificate, an API key or a token
(`Authorization: Bearer …`), or a name and a password (`Basic`). Whatever goes wrong is answered with a problem document
(RFC 9457)."""


def make_api(watched: Watched, *, metrics_public: bool) -> FastAPI:
    """All routes. Its `state` is where the door leaves what they need."""
    # The usual pages of documentation load scripts from other people's servers; `docs_page` has none.
    app = FastAPI(title="Sealane", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.gate = None
    app.state.idempotency_keys = IdempotencyKeys()
    app.state.draining = None  # A future, from the start of the door on: done when nobody is to wait any longer.
    app.include_router(api_routes())
    app.include_router(watching(watched, metrics_public=metrics_public))
    app.include_router(docs_routes(app))
    answer_with_problems(app)
    _describe_named_shapes(app)
    return app


def make_app(api: FastAPI, settings: HttpDoorSettings, *, loopback_only: bool) -> ASGIApp:
    """The routes, behind what every request passes. The last line is what it meets first.

    `loopback_only`: it answers to the names of this machine's loopback alone.
    """
    app: ASGIApp = DirectPublishing(api, api)
    app = UnpackedBodies(app, bytes_max=settings.body_bytes_max)
    app = PackedAnswers(app)
    app = BodyLimit(app, bytes_max=settings.body_bytes_max, seconds_max=settings.receive_seconds_max)
    if loopback_only:
        app = LoopbackHosts(app)
    return RequestIds(app)


def _describe_named_shapes(app: FastAPI) -> None:
    """Add to the OpenAPI document what it refers to by name only."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        named = document.setdefault("components", {}).setdefault("schemas", {})
        for shape in NAMED_SHAPES:
            described = shape.model_json_schema(ref_template="#/components/schemas/{model}")
            described.pop("$defs", None)
            named.setdefault(shape.__name__, described)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
