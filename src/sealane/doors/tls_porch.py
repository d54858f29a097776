"""The porch of a door with TLS: who is in the middle of a handshake, how many may be, and how long."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable

from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import Inside, TlsConnection
from sealane.errors import TooManyConnections
from sealane.log import get_log
from sealane.node.gate import Gate

log = get_log("sealane.doors.tls")

HANDSHAKE_SECONDS_MAX = 10.0
"""From the connection's first moment to the end of its TLS handshake: far more than any line takes."""
MIDWAY_MAX = 64
"""Clients that have shown a part of their certificate: OpenSSL takes 130 KiB for what they announce, so these are few.
One more, and the first is cut off: who means well is done within a moment."""
SCRATCH_BYTES = 256 << 10
"""Received at once, into the buffer that all connections of a door share."""


class Turns:
    """One step of one handshake in a pass of the event loop, and the others wait in line.

    A step takes OpenSSL a quarter of a millisecond, more where a client shows a certificate, and meanwhile nobody else
    is served: strangers who come by the hundred are not to make those wait who are inside.
    """

    def __init__(self) -> None:
        self._line: deque[TlsConnection] = deque()
        self._taken = False
        """Whether somebody has had this pass."""

    def take(self, connection: TlsConnection) -> bool:
        """Whether it is its turn now; otherwise its `have_turn` is called when it is."""
        if self._taken:
            self._line.append(connection)
            return False
        self._take_pass()
        return True

    def _take_pass(self) -> None:
        self._taken = True
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._taken = False
        while self._line:
            connection = self._line.popleft()
            if not connection.is_closing():
                self._take_pass()
                connection.have_turn()
                return


class TlsPorch:
    """Between a door's port and its own protocol. Everything happens on the event loop."""

    def __init__(
        self, door: str, tls: NodeTls, *, waiting_max: int, word_to_plain_text: bytes, protocol: str = ""
    ) -> None:
        """Of the door of this name. So many may be in the middle of their handshake; `word_to_plain_text` is all that
        those hear who do not speak TLS; `protocol` is for clients that ask which one is spoken inside.
        """
        self._door = door
        self._tls = tls
        self._protocol = protocol
        self._waiting_max = waiting_max
        self.word_to_plain_text = word_to_plain_text
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        """Between `get_buffer` and `buffer_updated` of one connection nothing of another one runs."""
        self.connections_refused = 0
        self.gate: Gate | None = None
        """Where they are counted, as soon as there is a node."""
        self._waiting: dict[TlsConnection, str | None] = {}
        """With the address under which each is counted."""

        self.turns = Turns()
        self._midway: dict[TlsConnection, None] = {}
        """Those whose certificate has come in part, the first in front."""

    def connection(self, make_inside: Callable[[], Inside]) -> TlsConnection:
        """The protocol of a new connection, for `create_server`; `make_inside` makes the door's own protocol, once the
        handshake is done.
        """
        return TlsConnection(self, make_inside)

    @property
    def waiting(self) -> int:
        """How many are in the middle of a handshake."""
        return len(self._waiting)

    @property
    def context(self) -> ssl.SSLContext:
        return self._tls.context_for(self._protocol)

    def came(self, connection: TlsConnection) -> asyncio.TimerHandle:
        """Let it wait here; the timer is its deadline. One too many is cut off, since it cannot be told anything."""
        self._waiting[connection] = None
        if len(self._waiting) > self._waiting_max:
            self.refused("too many handshakes are under way", connection)
            connection.abort()
        elif self.gate is not None:
            address = str((connection.get_extra_info("peername") or ("",))[0])
            try:
                self.gate.entrances.arrived(address)
                self._waiting[connection] = address
            except TooManyConnections as error:
                self.refused(str(error), connection)
                connection.abort()
        return asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS_MAX, self._too_slow, connection)

    def left(self, connection: TlsConnection) -> None:
        """It has come in, where its door counts it from now on, or gone away."""
        self._midway.pop(connection, None)
        address = self._waiting.pop(connection, None)
        if address is not None and self.gate is not None:
            self.gate.entrances.departed(address)

    def midway(self, connection: TlsConnection) -> None:
        """A part of its certificate has come, and the rest has not."""
        self._midway[connection] = None
        if len(self._midway) > MIDWAY_MAX:
            first = next(iter(self._midway))
            self.refused("too many certificates come in pieces, and it was the first", first)
            first.abort()
            self._midway.pop(first)

    def _too_slow(self, connection: TlsConnection) -> None:
        self.refused("its handshake took too long", connection)
        connection.abort()

    def refused(self, why: str, transport: asyncio.BaseTransport | None) -> None:
        """Strangers could fill the log with this, so it is said only to those who look closely."""
        self.connections_refused += 1
        if self.gate is not None:
            self.gate.handshake_refused(self._door)
        log.debug("a TLS handshake is refused", problem=why, peer=self.peer_of(transport))

    @staticmethod
    def peer_of(transport: asyncio.BaseTransport | None) -> str:
        address = transport.get_extra_info("peername") if transport is not None else None
        return f"{address[0]}:{address[1]}" if address else "gone"

    def close(self) -> None:
        """Cut off whoever is in the middle of a handshake."""
        for connection in list(self._waiting):
            connection.abort()
