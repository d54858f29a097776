"""The application behind the http door: its routes, and what holds for all of them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.datastructures import State
from starlette.types import ASGIApp

from sealane._version import __version__
from sealane.doors.http.api.describing import NAMED_SHAPES
from sealane.doors.http.api.idempotency import IdempotencyKeys
from sealane.doors.http.api.routes import api_routes
from sealane.doors.http.direct import DirectPublishing
from sealane.doors.http.docs_page import docs_routes
from sealane.doors.http.problems import answer_with_problems
from sealane.doors.http.watched import Watching
from sealane.doors.http.watching import watching_routes

DESCRIPTION = """\
Topics, subscriptions and messages of one Sealane node. Whoever asks shows a client certificate, an API key or a token
(`Authorization: Bearer …`), or a name and a password (`Basic`). Whatever goes wrong is answered with a problem document
(RFC 9457)."""


def make_api(watching: Watching, state: State | None = None) -> FastAPI:
    """All routes. Their `state` is where the door leaves what they need."""
    # The usual pages of documentation load scripts from other people's servers; `docs_page` has none.
    app = FastAPI(title="Sealane", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    # `draining` is a future, from the start of the door on: done when nobody is to wait any longer.
    app.state = state if state is not None else State({"gate": None, "draining": None})
    app.state.idempotency_keys = IdempotencyKeys()
    app.state.watching = watching
    app.include_router(api_routes())
    app.include_router(watching_routes)
    app.include_router(docs_routes)
    answer_with_problems(app)
    _describe_named_shapes(app)
    return app


def make_direct_api(watching: Watching, state: State) -> ASGIApp:
    """The same, with a short way for what is asked most."""
    api = make_api(watching, state)
    return DirectPublishing(api, api)


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
