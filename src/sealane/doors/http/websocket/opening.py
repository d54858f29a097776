"""The request that opens a WebSocket: whether it may, and in which format the two will speak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import NegotiationError
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from sealane.doors.http.connection import Upgrade
from sealane.doors.http.hosts import is_loopback
from sealane.doors.http.problem import Problem
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.websocket.formats import FORMATS, JSON, Format

PATH = "/api/v1/ws"
_PORTS = {"http": 80, "https": 443}


class OpeningRefused(Exception):
    """It is answered with this problem, and nothing is upgraded."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(bytes(problem.body).decode())


@dataclass(frozen=True, slots=True)
class Opening:
    """A request that may be answered with 101."""

    format: Format
    answer: bytes
    authorization: str | None


def read_opening(upgrade: Upgrade, settings: HttpDoorSettings, *, loopback_only: bool) -> Opening:
    """Raises `OpeningRefused`. `loopback_only`: the door has no TLS, and it must be meant for this machine."""
    path, _, query = upgrade.target.partition("?")
    if path != PATH:
        raise OpeningRefused(Problem(404, f"there is no WebSocket at {path[:128]}; it is at {PATH}"))
    if query:
        # Addresses are logged and remembered everywhere: what is secret must not get into the habit of being there.
        raise OpeningRefused(Problem(400, f"{PATH} takes no query; credentials are shown by a header or in `hello`"))
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in upgrade.headers])
    host = ", ".join(headers.get_all("host"))
    if loopback_only and not is_loopback(host):
        problem = f"this node has no authentication and answers to localhost only, not to {host[:128]!r}"
        raise OpeningRefused(Problem(421, problem))
    own = f"{'http' if loopback_only else 'https'}://{host}"
    _check_origin(headers.get_all("origin"), own, settings.allowed_origins)
    protocol = ServerProtocol(select_subprotocol=_select)
    request = Request(path, headers, upgrade.method, f"HTTP/{upgrade.http_version}")
    response = protocol.accept(request)
    if response.status_code != 101:
        raise OpeningRefused(Problem(response.status_code, f"{PATH} cannot be opened: {protocol.handshake_exc}"))
    shown = headers.get_all("authorization")
    chosen = FORMATS[protocol.subprotocol] if protocol.subprotocol is not None else JSON
    return Opening(chosen, response.serialize(), shown[0] if shown else None)


def refusal(problem: Problem) -> bytes:
    """The whole answer to a request that is refused; the connection is closed behind it."""
    head = [f"HTTP/1.1 {problem.status_code} {HTTPStatus(problem.status_code).phrase}".encode()]
    head += [b"%b: %b" % (name, value) for name, value in problem.raw_headers]
    return b"\r\n".join([*head, b"connection: close", b"", bytes(problem.body)])


def _select(protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The first that the client names and the node knows; JSON for who names none."""
    if not offered:
        return None
    for each in offered:
        if each in FORMATS:
            return each
    raise NegotiationError(f"it speaks {' and '.join(FORMATS)}, none of which was offered")


def _check_origin(origins: Sequence[str], own: str, allowed: frozenset[str]) -> None:
    """A browser says of which page it is: only the node's own, and those that the settings name, may connect."""
    if not origins:
        return  # No browser.
    [origin, *others] = origins
    if others or not (origin.lower() in allowed or (_place(own) is not None and _place(origin) == _place(own))):
        problem = f"pages of {origin[:128]!r} may not connect here; allow them by the setting doors.http.origins"
        raise OpeningRefused(Problem(403, problem))


def _place(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for what is no origin."""
    try:
        found = urlsplit(origin.lower())
        port = found.port or _PORTS[found.scheme]
    except (ValueError, KeyError):
        return None
    return (found.scheme, found.hostname, port) if found.hostname else None
