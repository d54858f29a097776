"""What every request passes on its way to the API, and every answer on its way back."""

from __future__ import annotations

from starlette.types import ASGIApp

from sealane.doors.http.body_limit import BodyLimit
from sealane.doors.http.compression import PackedAnswers, UnpackedBodies
from sealane.doors.http.hosts import LoopbackHosts
from sealane.doors.http.request_ids import RequestIds
from sealane.doors.http.settings import HttpDoorSettings


def with_passage(app: ASGIApp, settings: HttpDoorSettings, *, loopback_only: bool) -> ASGIApp:
    """The last line is what a request meets first.

    `loopback_only`: it answers to the names of this machine's loopback alone.
    """
    app = UnpackedBodies(app, bytes_max=settings.body_bytes_max)
    app = PackedAnswers(app)
    app = BodyLimit(app, bytes_max=settings.body_bytes_max, seconds_max=settings.receive_seconds_max)
    if loopback_only:
        app = LoopbackHosts(app)
    return RequestIds(app)
