"""A door on a TCP port of its own: listens, counts who comes and goes, and lets time pass for all of them.

What is said at it, and to whoever is one too many, is a matter of each such door.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from sealane.doors.intake import Budget
from sealane.doors.listening import BACKLOG, address_of, listen
from sealane.doors.tls import NodeTls
from sealane.doors.tls_porch import TlsPorch
from sealane.errors import Closed, TooManyConnections
from sealane.log import get_log
from sealane.node.gate import Gate

log = get_log("sealane.doors")

SWEEP_SECONDS = 1.0
"""How often heartbeats and deadlines of all connections are looked at."""
DEAF_SECONDS = 5.0
"""A sweep that is later than this means that the node itself was stuck: nobody is taken for silent or slow then."""
DRAIN_LOOK_SECONDS = 0.02
CLOSE_SECONDS_MAX = 5.0
"""At `close`, what is under way may take so long before it is cancelled."""


class StreamDoorSettings(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def connections_max(self) -> int: ...
    @property
    def in_flight_bytes_total_max(self) -> int: ...


class StreamConnection(Protocol):
    @property
    def host(self) -> str:
        """From where it came."""

    def drain(self) -> None:
        """Begin nothing new."""

    def abort(self) -> None:
        """Be gone, without a word."""

    def tick(self, now: float, *, deaf: bool) -> None:
        """Time has passed."""


Settings = TypeVar("Settings", bound=StreamDoorSettings)
Connection = TypeVar("Connection", bound=StreamConnection)


class StreamDoor(ABC, Generic[Settings, Connection]):
    """Implements `Door`; a door of this kind makes the connections, which speak its protocol."""

    name: ClassVar[str]
    word_to_plain_text: ClassVar[bytes]
    """What those hear who do not speak TLS where the door does."""

    def __init__(
        self,
        gate: Gate,
        settings: Settings,
        *,
        tls: NodeTls | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Without `tls` it speaks plain text, whatever the settings say."""
        self.gate = gate
        self.settings = settings
        self.clock: Callable[[], float] = clock or asyncio.get_running_loop().time
        self.budget = Budget(settings.in_flight_bytes_total_max)
        self.draining = False
        self._connections: dict[Connection, str | None] = {}
        """With the address under which each is counted; None for those that were one too many."""
        self._everyone_gone = asyncio.Event()
        self._everyone_gone.set()
        self._background: set[asyncio.Task[None]] = set()
        self._porch: TlsPorch | None = None
        if tls is not None:
            word, limit = self.word_to_plain_text, settings.connections_max
            self._porch = TlsPorch(self.name, tls, waiting_max=limit, word_to_plain_text=word)
            self._porch.gate = gate
        self._server: asyncio.Server | None = None
        self._address = ""
        self._sweeper: asyncio.TimerHandle | None = None
        self._swept = 0.0

    @abstractmethod
    def new_connection(self) -> Connection:
        """The protocol for someone who has come."""

    @abstractmethod
    def close_idle(self) -> None:
        """Let those go who have nothing under way; called again and again while the door is drained."""

    @abstractmethod
    def dismiss(self) -> None:
        """Tell those who are left that the door has waited for them as long as it may."""

    @property
    def address(self) -> str:
        assert self._address, "the door has not been started"
        return self._address

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._connections)

    # --- opening and closing ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        listener = listen(self.name, self.settings.host, self.settings.port)
        self._address = address_of(listener)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new_protocol, sock=listener, backlog=BACKLOG)
        self._swept = self.clock()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep_again)
        log.info("a door is open", door=self.name, address=self._address, tls=self._porch is not None)

    def _new_protocol(self) -> asyncio.BaseProtocol:
        made: Callable[[], Any] = self.new_connection
        return made() if self._porch is None else self._porch.connection(made)

    async def drain(self, seconds: float) -> None:
        if self._server is None or self.draining:
            return
        self.draining = True
        self._server.close()
        for connection in list(self._connections):
            connection.drain()
        stop = self.clock() + seconds
        while self._connections and self.clock() < stop:
            self.close_idle()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._everyone_gone.wait(), DRAIN_LOOK_SECONDS)
        self.dismiss()

    async def close(self) -> None:
        server, self._server = self._server, None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if server is None:
            return
        self.draining = True
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

    # --- coming and going ---------------------------------------------------------------------------------------------

    def came(self, connection: Connection) -> None:
        """Count someone who has come. Raises what speaks against it; it is to be told, and to go, and counts as there
        until it is gone.
        """
        self._connections[connection] = None
        self._everyone_gone.clear()
        if self.draining:
            raise Closed("the node stops")
        limit = self.settings.connections_max
        if len(self._connections) > limit:
            raise TooManyConnections("at this door", limit, f"doors.{self.name}.connections_max")
        self.gate.entrances.arrived(connection.host)
        self._connections[connection] = connection.host

    def went(self, connection: Connection) -> None:
        address = self._connections.pop(connection, None)
        if address is not None:
            self.gate.entrances.departed(address)
        if not self._connections:
            self._everyone_gone.set()

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do it in the background: what crashes is told, and `close` waits for it."""
        task = asyncio.get_running_loop().create_task(self._watched(name, work), name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _watched(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.gate.supervisor.crashed(name, error)

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
