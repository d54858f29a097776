"""What the http door can be told."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sealane.errors import InvalidArgument

_ORIGIN = re.compile(r"https?://[^/?#@\s]+")


@dataclass(frozen=True, slots=True)
class HttpDoorSettings:
    """Settings of the http door, `doors.http.*` in the configuration."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = 8080
    connections_max: int = 1_000
    """Connections at a time; one more is answered with 503 and closed, so that a flood of them leaves file descriptors
    for the other doors."""
    head_bytes_max: int = 16 * 1024
    """Request line and headers: more than any client needs, and all that a stranger can make the node keep of them."""
    body_bytes_max: int = 16 * 1024 * 1024
    """A request's body. A full batch of 8 MiB fits, also as base64 in JSON."""
    receive_seconds_max: float = 30.0
    """How long a request may take to arrive, first byte to last: a client that dribbles is cut off."""
    send_seconds_max: float = 30.0
    """How long a client may leave an answer unread: whoever takes longer is cut off."""
    keep_alive_seconds: int = 30
    """How long a connection may be idle between two requests."""
    metrics_public: bool = False
    """Whether everyone sees the metrics, which tell the names of topics: off, they need a credential."""
    origins: str | None = None
    """Of which pages a browser may open a WebSocket, beside the node's own: `https://shop.example`, several with commas
    between them. A page can make its visitors connect to any node that they can reach."""

    @property
    def allowed_origins(self) -> frozenset[str]:
        listed = (self.origins or "").split(",")
        return frozenset(each.strip().lower().rstrip("/") for each in listed if each.strip())

    def __post_init__(self) -> None:
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidArgument("doors.http.origins", f"{origin!r} is not as https://shop.example or with a port")
        for name in ("connections_max", "head_bytes_max", "body_bytes_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"doors.http.{name}", "must be at least 1")
        for name in ("receive_seconds_max", "send_seconds_max"):
            if getattr(self, name) <= 0:
                raise InvalidArgument(f"doors.http.{name}", "must be more than 0")
