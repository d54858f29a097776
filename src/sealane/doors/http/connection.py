"""One HTTP connection, bounded: how many there are, how large and slow a request's head may be, how long to send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sealane.doors.deadlines import Deadline
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.known_callers import KnownCallers
from sealane.errors import TooManyConnections
from sealane.node.entrances import Entrances

CERTIFICATE = "client_certificate"
"""Where a request's state has the client's certificate (DER), or None."""
CALLERS = "known_callers"
"""Where it has who has asked by this connection before."""
ABORT = "abort_connection"
"""Where it has what cuts the connection off."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A request whose connection is to speak WebSocket from here on."""

    method: str
    target: str
    """The path, and the query if there is one."""
    http_version: str
    headers: Sequence[tuple[bytes, bytes]]
    """Names are in lower case."""
    certificate: bytes | None
    """The client's (DER)."""
    address: str
    departed: Callable[[], None]
    """To be called once the connection is gone, which counts until then."""


class BoundedConfig(uvicorn.Config):
    """Carries the door's settings to each connection."""

    door: HttpDoorSettings
    entrances: Entrances | None = None
    """Where connections are counted by their address, as soon as there is a node."""
    converse: Callable[[Upgrade], asyncio.Protocol]
    """Makes the protocol of a connection that is upgraded."""


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection, which on its own waits for ever for a head of any size."""

    config: BoundedConfig
    _arriving: Deadline
    _unread: Deadline
    _certificate: bytes | None = None
    _counted: Entrances | None = None
    _host = ""
    _in_head = False
    _head_bytes = 0
    _refused = False
    _upgraded = False

    # --- from the transport -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arriving = Deadline(self.loop, transport)
        self._unread = Deadline(self.loop, transport)
        self._host = str((transport.get_extra_info("peername") or ("",))[0])
        tls = transport.get_extra_info("ssl_object")
        self._certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        self._callers = KnownCallers()
        limit = self.config.door.connections_max
        if len(self.connections) > limit:
            self._refuse(503, f"{limit:,} connections are open (doors.http.connections_max); try again later")
            return
        if self.config.entrances is not None and not self._is_counted(self.config.entrances):
            return
        self._arriving.set(self.config.door.receive_seconds_max)

    def _is_counted(self, entrances: Entrances) -> bool:
        try:
            entrances.arrived(self._host)
        except TooManyConnections as error:
            self._refuse(429, str(error))
            return False
        self._counted = entrances
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._depart(self)
        self._arriving.clear()
        self._unread.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._upgraded:
            self.transport.abort()  # It was sent before the upgrade was answered.
            return
        # What a head begins with may stand behind the end of another request, so the first piece is not counted here.
        in_head = self._in_head
        super().data_received(data)
        if in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.config.door.head_bytes_max:
                self._refuse_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.set(self.config.door.send_seconds_max)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.clear()

    # --- from the parser ----------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        state: dict[str, Any] = self.scope["state"]
        state[CERTIFICATE] = self._certificate
        state[CALLERS] = self._callers
        state[ABORT] = self.transport.abort
        self._in_head = True
        self._head_bytes = 0
        self._arriving.set(self.config.door.receive_seconds_max)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._arriving.clear()
        # A head that came in one piece was never seen incomplete.
        if (
            len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            > self.config.door.head_bytes_max
        ):
            self._refuse_head()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over: it is counted on, and this protocol hears nothing more of it."""
        if self._refused:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse(400, "an upgrade must wait for the answer to the request before it")
            return
        self._arriving.clear()
        self._unread.clear()
        upgrade = Upgrade(
            self.scope["method"],
            self.url.decode("latin-1"),
            self.scope["http_version"],
            self.headers,
            self._certificate,
            self._host,
            lambda: self._depart(protocol),
        )
        self._upgraded = True
        protocol = self.config.converse(upgrade)
        self.connections.discard(self)
        self.connections.add(protocol)  # type: ignore[arg-type]  # it has what the server asks of a connection
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)

    def _depart(self, protocol: asyncio.Protocol) -> None:
        """The connection is gone, whichever protocol it spoke last."""
        self.connections.discard(protocol)
        if self._counted is not None:
            self._counted.departed(self._host)
            self._counted = None

    # --- refusing -----------------------------------------------------------------------------------------------------

    def _refuse_head(self) -> None:
        limit = self.config.door.head_bytes_max
        self._refuse(431, f"request line and headers are larger than {limit:,} bytes (doors.http.head_bytes_max)")

    def _refuse(self, status: int, detail: str) -> None:
        self._refused = True
        self.transport.write(plain_problem(status, detail))
        self.transport.close()


def plain_problem(status: int, detail: str) -> bytes:
    """A whole answer, for where no application gives one."""
    title = HTTPStatus(status).phrase
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
