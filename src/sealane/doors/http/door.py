"""The http door: uvicorn on the node's own event loop, without its hands on signals, logs or ports."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.datastructures import State
from starlette.types import ASGIApp

from sealane.doors.http.connection import BoundedConfig, BoundedConnection, plain_problem
from sealane.doors.http.later import LaterApi
from sealane.doors.http.passage import with_passage
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched, Watching
from sealane.doors.http.websocket.connection import WebSocketConnection
from sealane.doors.http.websocket.conversations import Conversations
from sealane.doors.listening import address_of, listen
from sealane.doors.tls import NodeTls
from sealane.doors.tls_porch import TlsPorch
from sealane.log import get_log
from sealane.node.gate import Gate

log = get_log("sealane.doors.http")

_WORD_TO_PLAIN_TEXT = plain_problem(400, "this door speaks TLS: ask by https://")

ENDING_SECONDS = 0.5
"""At `close`, requests that are cut off may take so long before they are cancelled."""


class HttpDoor:
    """Implements `Door`."""

    name = "http"

    def __init__(self, settings: HttpDoorSettings, watched: Watched, *, tls: NodeTls | None = None) -> None:
        """Without `tls` it speaks plain text, and knows nobody: its metrics are for everyone then."""
        self._porch: TlsPorch | None = None
        if tls is not None:
            limit = settings.connections_max
            self._porch = TlsPorch(self.name, tls, waiting_max=limit, word_to_plain_text=_WORD_TO_PLAIN_TEXT)
        watching = Watching(watched, metrics_public=settings.metrics_public or tls is None)
        self._api = LaterApi(watching, partial(_make_api, watching))
        config = BoundedConfig(
            with_passage(self._api, settings, loopback_only=tls is None),
            http=cast(type[asyncio.Protocol], self._new_protocol),
            ws=WebSocketConnection,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            # Below an error it tells of each client that sends garbage: whoever likes could fill the log.
            log_level="error",
            access_log=False,
            # Whoever connects could claim to be someone else.
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.keep_alive_seconds,
        )
        self._conversations = Conversations(settings, loopback_only=tls is None)
        config.door = settings
        config.converse = self._conversations.connect
        self._config = config
        self._settings = settings
        self._server = uvicorn.Server(config)
        self._listener: socket.socket | None = None
        self._address = ""
        self._ticking: asyncio.Task[None] | None = None

    def let_in(self, gate: Gate) -> None:
        """The node is there: requests that need a principal are answered from now on."""
        self._api.state.gate = gate
        self._config.entrances = gate.entrances
        if self._porch is not None:
            self._porch.gate = gate
        self._conversations.open(gate)

    def _new_protocol(self, **arguments: Any) -> asyncio.BaseProtocol:
        inside = partial(BoundedConnection, **arguments)
        return inside() if self._porch is None else self._porch.connection(inside)

    @property
    def address(self) -> str:
        assert self._address, "the door has not been started"
        return self._address

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def start(self) -> None:
        self._listener = listen(self.name, self._settings.host, self._settings.port)
        self._address = address_of(self._listener)
        self._api.state.draining = asyncio.get_running_loop().create_future()
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._listener])
        self._ticking = asyncio.create_task(self._server.main_loop(), name="http door")
        log.info("the http door is open", address=self._address)

    async def drain(self, seconds: float) -> None:
        """Requests that have begun are answered; connections without one are closed. Who waits for messages is told."""
        self._announce_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(self._conversations.drain(seconds), self._shut_down())

    async def _shut_down(self) -> None:
        if self._ticking is None or self._listener is None:
            return
        self._server.should_exit = True
        await self._ticking
        await self._server.shutdown(sockets=[self._listener])

    def _announce_end(self) -> None:
        draining: asyncio.Future[None] | None = self._api.state.draining
        if draining is not None and not draining.done():
            draining.set_result(None)

    async def close(self) -> None:
        self._announce_end()
        self._server.force_exit = True
        self._conversations.say_goodbye()
        if self._porch is not None:
            self._porch.close()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        if self._server.server_state.tasks:
            # Most end by themselves when they hear that their client has gone; uvicorn logs those that are cancelled.
            await asyncio.wait(set(self._server.server_state.tasks), timeout=ENDING_SECONDS)
        for task in list(self._server.server_state.tasks):
            task.cancel()
        await self._shut_down()
        self._ticking = self._listener = None
        await self._conversations.close()


def _make_api(watching: Watching, state: State) -> ASGIApp:
    from sealane.doors.http.app import make_direct_api

    return make_direct_api(watching, state)
