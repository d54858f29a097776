"""The application behind the http door: its routes, and what holds for all of them."""

from __future__ import annotations

from fastapi import FastAPI

from sealane._version import __version__
from sealane.doors.http.body_limit import BodyLimit
from sealane.doors.http.problems import answer_with_problems
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watching import Watched, watching


def make_app(settings: HttpDoorSettings, watched: Watched, *, metrics_public: bool) -> FastAPI:
    # The usual pages of documentation load scripts from other people's servers; the description itself is enough.
    app = FastAPI(title="Sealane", version=__version__, docs_url=None, redoc_url=None)
    app.state.gate = None
    app.include_router(watching(watched, metrics_public=metrics_public))
    app.add_middleware(BodyLimit, bytes_max=settings.body_bytes_max, seconds_max=settings.receive_seconds_max)
    answer_with_problems(app)
    return app
