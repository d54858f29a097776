"""The native door: listens, knows its connections and their consumers, and lets time pass for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from sealane.doors.intake import Budget
from sealane.doors.listening import BACKLOG, address_of, listen
from sealane.doors.native.connection import NativeConnection
from sealane.doors.native.consumers import NativeConsumer
from sealane.doors.native.settings import NativeDoorSettings
from sealane.doors.tls import NodeTls
from sealane.doors.tls_porch import TlsPorch
from sealane.errors import Closed, TooManyConnections
from sealane.log import get_log
from sealane.node.gate import Gate
from sealane.wire.frames import frame, new_scratch
from sealane.wire.messages import Goodbye

log = get_log("sealane.doors.native")

SWEEP_SECONDS = 1.0
"""How often heartbeats and deadlines of all connections are looked at."""
DEAF_SECONDS = 5.0
"""A sweep that is later than this means that the node itself was stuck: nobody is taken for silent then."""
QUIET_SECONDS = 0.5
"""A connection that is drained and has had nothing to do for so long is closed, if its client does not do it: long
enough for a request that was on its way to be refused with a word."""
DRAIN_LOOK_SECONDS = 0.02
CLOSE_SECONDS_MAX = 5.0
"""At `close`, what is under way may take so long before it is cancelled."""
_WORD_TO_PLAIN_TEXT = b"".join(
    frame(msgspec.msgpack.encode(Goodbye("unauthenticated", "this door speaks TLS: connect by sealanes://")))
)


class NativeDoor:
    """Implements `Door`."""

    name = "native"

    def __init__(
        self,
        gate: Gate,
        settings: NativeDoorSettings,
        *,
        node_id: str,
        software: str,
        tls: NodeTls | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Without `tls` it speaks plain text."""
        self.gate = gate
        self.settings = settings
        self.node_id = node_id
        self.software = software
        self.supervisor = gate.supervisor
        self.refused = gate.refused
        self.clock: Callable[[], float] = clock or asyncio.get_running_loop().time
        self.call_soon = asyncio.get_running_loop().call_soon
        self.scratch = new_scratch()
        self.budget = Budget(settings.in_flight_bytes_total_max)
        self.received_bytes = 0
        self.sent_bytes = 0
        self.connections_refused = 0
        self._connections: dict[NativeConnection, str | None] = {}
        """With the address under which each is counted; None for those that were one too many."""
        self._everyone_gone = asyncio.Event()
        self._everyone_gone.set()
        self._consumers: dict[tuple[str, str], tuple[NativeConnection, NativeConsumer]] = {}
        """By principal and identity: those that transactions may name."""
        self._background: set[asyncio.Task[None]] = set()
        self._came = 0
        self._porch: TlsPorch | None = None
        if tls is not None:
            limit = settings.connections_max
            self._porch = TlsPorch(self.name, tls, waiting_max=limit, word_to_plain_text=_WORD_TO_PLAIN_TEXT)
            self._porch.gate = gate
        self._server: asyncio.Server | None = None
        self._address = ""
        self._sweeper: asyncio.TimerHandle | None = None
        self._swept = 0.0
        self._draining = False

    @property
    def address(self) -> str:
        assert self._address, "the door has not been started"
        return self._address

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._connections)

    @property
    def consumers(self) -> int:
        return len(self._consumers)

    @property
    def in_flight_bytes(self) -> int:
        """What clients have asked for and not been answered yet."""
        return self.budget.in_flight_bytes

    # --- coming and going ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        listener = listen(self.name, self.settings.host, self.settings.port)
        self._address = address_of(listener)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new_protocol, sock=listener, backlog=BACKLOG)
        self._swept = self.clock()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep_again)
        log.info("the native door is open", address=self._address)

    async def drain(self, seconds: float) -> None:
        if self._server is None or self._draining:
            return
        self._draining = True
        self._server.close()
        for connection in list(self._connections):
            connection.drain()
        stop = self.clock() + seconds
        while self._connections and self.clock() < stop:
            self._close_quiet(self.clock())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._everyone_gone.wait(), DRAIN_LOOK_SECONDS)
        for connection in list(self._connections):
            connection.say_goodbye("closing", "the node stops, and waited as long as it may")

    def _close_quiet(self, now: float) -> None:
        for connection in list(self._connections):
            if connection.busy:
                connection.quiet_since = None
            elif connection.quiet_since is None:
                connection.quiet_since = now
            elif now - connection.quiet_since >= QUIET_SECONDS:
                connection.say_goodbye("closing", "the node stops, and everything that was asked for is done")

    async def close(self) -> None:
        server, self._server = self._server, None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if server is None:
            return
        self._draining = True
        server.close()
        if self._porch is not None:
            self._porch.close()
        for connection in list(self._connections):
            connection.abort()
        await self._everyone_gone.wait()
        await server.wait_closed()
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=CLOSE_SECONDS_MAX)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _new_protocol(self) -> asyncio.BufferedProtocol:
        return self._new_connection() if self._porch is None else self._porch.connection(self._new_connection)

    def _new_connection(self) -> NativeConnection:
        self._came += 1
        return NativeConnection(self, self._came)

    def came(self, connection: NativeConnection) -> None:
        """A connection was made."""
        self._connections[connection] = None
        self._everyone_gone.clear()
        if self._draining:
            connection.say_goodbye("closing", "the node stops")
            return
        limit = self.settings.connections_max
        try:
            if len(self._connections) > limit:
                raise TooManyConnections("at this door", limit, "doors.native.connections_max")
            self.gate.entrances.arrived(connection.host)
            self._connections[connection] = connection.host
        except TooManyConnections as error:
            self.connections_refused += 1
            connection.turn_away(error)

    def went(self, connection: NativeConnection) -> None:
        address = self._connections.pop(connection, None)
        if address is not None:
            self.gate.entrances.departed(address)
        if not self._connections:
            self._everyone_gone.set()

    # --- consumers ----------------------------------------------------------------------------------------------------

    def _place(self, connection: NativeConnection, identity: str) -> tuple[str, str]:
        return connection.session.principal.name, identity

    def consumer_came(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """It has its identity from now on: of an earlier one, whose connection may be half dead, it takes it over."""
        place = self._place(connection, consumer.identity)
        earlier = self._consumers.get(place)
        self._consumers[place] = (connection, consumer)
        if earlier is not None:
            self._end(*earlier)

    def find_consumer(self, connection: NativeConnection, identity: str) -> NativeConsumer:
        found = self._consumers.get(self._place(connection, identity))
        if found is None:
            raise Closed(f"there is no consumer {identity!r}: it has ended, and what it held may be delivered again")
        return found[1]

    def consumer_done(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """It has left, and holds nothing any more."""
        connection.forget_consumer(consumer)
        self._spawn(consumer.end())

    def consumer_lost(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """Its connection is gone: its leases end."""
        self.consumer_forgotten(connection, consumer)
        self._spawn(consumer.end(node_stops=self._draining))

    def consumer_forgotten(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        place = self._place(connection, consumer.identity)
        if self._consumers.get(place) == (connection, consumer):
            del self._consumers[place]

    def _end(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        connection.forget_consumer(consumer)
        consumer.taken_over()
        self._spawn(consumer.end())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._watched(work), name="native consumer's end")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.supervisor.crashed("native consumer's end", error)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _sweep_again(self) -> None:
        self.sweep()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_again)

    def sweep(self) -> None:
        """Let time pass for every connection; happens by itself about once a second."""
        now = self.clock()
        deaf = now - self._swept > DEAF_SECONDS
        self._swept = now
        self.gate.show_out()
        for connection in list(self._connections):
            connection.tick(now, deaf=deaf)
            connection.tidy()
