"""The entry of the grpc door: the port where clients come, their TLS, how many there are, and who each of them is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sealane.doors.grpc.passages import Passage
from sealane.doors.listening import BACKLOG, address_of, listen
from sealane.doors.tls import NodeTls
from sealane.doors.tls_porch import TlsPorch
from sealane.errors import TooManyConnections
from sealane.node.gate import Gate

DOOR = "grpc"
_ALPN = "h2"
_WORD_TO_PLAIN_TEXT = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
    b"this door speaks TLS: connect by a secure channel\n"
)
"""Clients of gRPC show the status to their users."""
_PEER = "unix-abstract:"
"""What gRPC puts before the name of a passage."""


class Entry:
    """Leads to gRPC, wherever that listens (`open`)."""

    def __init__(self, gate: Gate, *, connections_max: int, tls: NodeTls | None) -> None:
        """Without `tls` it takes plain text."""
        self.path = ""
        self._gate = gate
        self._connections_max = connections_max
        self._passages: dict[str, Passage] = {}
        """By the name that gRPC knows each by."""
        self._everyone_gone = asyncio.Event()
        self._everyone_gone.set()
        self._server: asyncio.Server | None = None
        self._porch: TlsPorch | None = None
        if tls is not None:
            self._porch = TlsPorch(
                DOOR, tls, waiting_max=connections_max, word_to_plain_text=_WORD_TO_PLAIN_TEXT, protocol=_ALPN
            )
            self._porch.gate = gate

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._passages)

    async def open(self, host: str, port: int, path: Path) -> str:
        """Let clients in, and say where they come; they are led to the socket at `path`. Raises `PortTaken`."""
        self.path = str(path)
        listener = listen(DOOR, host, port)
        address = address_of(listener)
        self._server = await asyncio.get_running_loop().create_server(self._new, sock=listener, backlog=BACKLOG)
        return address

    def shut(self) -> None:
        """Let nobody in any more."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Cut off whoever is left."""
        self.shut()
        if self._porch is not None:
            self._porch.close()
        for passage in list(self._passages.values()):
            passage.abort()
        await self._everyone_gone.wait()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def find(self, peer: str) -> Passage | None:
        """By which passage a call has come, of which gRPC says that this is its peer."""
        return self._passages.get(peer.removeprefix(_PEER)) if peer.startswith(_PEER) else None

    def _new(self) -> asyncio.BaseProtocol:
        return Passage(self) if self._porch is None else self._porch.connection(lambda: Passage(self))

    # --- for passages -------------------------------------------------------------------------------------------------

    def came(self, passage: Passage) -> None:
        """Raises `TooManyConnections`, and does not count it then."""
        if len(self._passages) >= self._connections_max:
            raise TooManyConnections("at this door", self._connections_max, "doors.grpc.connections_max")
        self._gate.entrances.arrived(passage.host)
        self._passages[passage.name] = passage
        self._everyone_gone.clear()

    def went(self, passage: Passage) -> None:
        if self._passages.pop(passage.name, None) is not None:
            self._gate.entrances.departed(passage.host)
        if not self._passages:
            self._everyone_gone.set()
