"""All WebSockets of the http door: how time passes for them, and how they end together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from sealane.doors.http.connection import Upgrade
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.websocket.connection import GOING_AWAY, WebSocketConnection
from sealane.doors.intake import Budget
from sealane.node.gate import Gate

SWEEP_SECONDS = 1.0
"""How often deadlines and credentials are looked at."""
DEAF_SECONDS = 5.0
"""A sweep that is later than this means that the node itself was stuck: nobody is taken for silent then."""
DRAIN_SECONDS_MAX = 2.0
"""When the node stops, clients have so long to answer for what they were handed."""
DRAIN_LOOK_SECONDS = 0.02
CLOSE_SECONDS_MAX = 5.0
"""When the door closes, giving back what consumers held may take so long before it is cancelled."""
IN_FLIGHT_BYTES_TOTAL_MAX = 128 << 20
"""What all connections together may have asked for without an answer: beyond it, no more is read from who asks next."""


class Conversations:
    """Of one door. Before `open` there is no node, and whoever comes is asked to come again."""

    def __init__(self, settings: HttpDoorSettings, *, loopback_only: bool) -> None:
        """`loopback_only`: the door has no TLS, so that its node has no authentication."""
        self.settings = settings
        self.loopback_only = loopback_only
        self.draining = False
        self.budget = Budget(IN_FLIGHT_BYTES_TOTAL_MAX)
        self._gate: Gate | None = None
        self._connections: dict[WebSocketConnection, None] = {}
        self._came = 0
        self._background: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._swept = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def has_node(self) -> bool:
        return self._gate is not None

    @property
    def gate(self) -> Gate:
        assert self._gate is not None, "nobody has come in before there is a node"
        return self._gate

    # --- coming and going ---------------------------------------------------------------------------------------------

    def open(self, gate: Gate) -> None:
        """There is a node. From now on those whose credential is over are shown out, however they came in."""
        self._gate = gate
        loop = asyncio.get_running_loop()
        self._swept = loop.time()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep_again)

    def connect(self, upgrade: Upgrade) -> WebSocketConnection:
        self._came += 1
        return WebSocketConnection(self, self._came, upgrade)

    def came(self, connection: WebSocketConnection) -> None:
        self._connections[connection] = None

    def went(self, connection: WebSocketConnection) -> None:
        self._connections.pop(connection, None)

    async def drain(self, seconds: float) -> None:
        """Nothing more is begun; each connection is closed once what was is finished, or the time is over."""
        self.draining = True
        loop = asyncio.get_running_loop()
        stop = loop.time() + min(DRAIN_SECONDS_MAX, seconds / 2)
        for connection in list(self._connections):
            connection.drain()
        while self._connections and loop.time() < stop:
            for connection in list(self._connections):
                if not connection.busy:
                    self._say_goodbye(connection)
            await asyncio.sleep(DRAIN_LOOK_SECONDS)
        self.say_goodbye()

    def say_goodbye(self) -> None:
        """To all that are left."""
        self.draining = True
        for connection in list(self._connections):
            self._say_goodbye(connection)

    @staticmethod
    def _say_goodbye(connection: WebSocketConnection) -> None:
        connection.close(GOING_AWAY, "the node stops; come back later, or to another one")

    async def close(self) -> None:
        """Once all connections are gone: what their consumers held has gone back when this returns."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if not self._background:
            return
        _, late = await asyncio.wait(self._background, timeout=CLOSE_SECONDS_MAX)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """What must be done for a connection, even after it is gone."""
        task = asyncio.get_running_loop().create_task(self._watched(work), name="websocket consumer's end")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.gate.supervisor.crashed("websocket consumer's end", error)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _sweep_again(self) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_again)
        self.sweep()

    def sweep(self) -> None:
        """Let time pass for every connection; happens by itself about once a second."""
        now = asyncio.get_running_loop().time()
        deaf = now - self._swept > DEAF_SECONDS
        self._swept = now
        self.gate.show_out()
        for connection in list(self._connections):
            connection.tick(now, deaf=deaf)
