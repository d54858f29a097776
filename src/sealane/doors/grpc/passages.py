"""Passages: from a client's connection to gRPC, which listens on a socket that only this process can reach.

gRPC for Python speaks TLS by itself, but older versions than 1.3 too, and takes a client's certificate from everyone or
from no one. So the node does here what it does at its other doors: it shakes hands, counts who comes, and knows each
one's certificate; gRPC is handed what was inside. The name that a passage's inner socket has tells whose call it is.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from typing import TYPE_CHECKING, Any, cast

from sealane.doors.known_callers import KnownCallers
from sealane.errors import TooManyConnections
from sealane.log import get_log

if TYPE_CHECKING:
    from sealane.doors.grpc.entry import Entry

log = get_log("sealane.doors.grpc")

FIRST_BYTES_MAX = 64 << 10
"""What a client may have sent before its passage is open, which takes a moment."""


class Passage(asyncio.Protocol):
    """One client's connection, inside of TLS."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._transport: asyncio.Transport | None = None
        self._inner: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._first = bytearray()
        self.host = ""
        self.certificate: bytes | None = None
        """The client's (DER), if it has shown one."""
        self.callers = KnownCallers()
        self.name = f"sealane-{secrets.token_hex(8)}"
        """Of the inner socket: nobody else can have it while it is there."""

    # --- from the client ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.host = str((transport.get_extra_info("peername") or ("",))[0])
        tls = transport.get_extra_info("ssl_object")
        self.certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        try:
            self._entry.came(self)
        except TooManyConnections as error:
            # Not with a word of HTTP/2: its client would take the connection for a good one, and come again at once.
            log.debug("a connection is refused", problem=str(error), peer=self.host)
            self._transport.abort()
            return
        self._opening = asyncio.get_running_loop().create_task(self._open(), name="grpc passage")

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            if not self._inner.is_closing():
                self._inner.write(data)
            return
        self._first += data
        if len(self._first) > FIRST_BYTES_MAX and self._transport is not None:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        if self._inner is not None and not self._inner.is_closing():
            self._inner.pause_reading()

    def resume_writing(self) -> None:
        if self._inner is not None and not self._inner.is_closing():
            self._inner.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._opening is not None:
            self._opening.cancel()
        if self._inner is not None:
            self._inner.close()
        self._entry.went(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- to gRPC ------------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            inner.setblocking(False)
            inner.bind(f"\0{self.name}")
            await loop.sock_connect(inner, self._entry.path)
            await loop.create_unix_connection(lambda: _Inner(self), sock=inner)
        except OSError as error:
            inner.close()
            log.warning("a connection is closed, since gRPC does not take it", problem=str(error))
            self.abort()
        except BaseException:
            inner.close()
            raise

    def opened(self, inner: asyncio.Transport) -> None:
        """It leads somewhere now."""
        if self._transport is None or self._transport.is_closing():
            inner.abort()
            return
        self._inner = inner
        if self._first:
            inner.write(bytes(self._first))
            self._first.clear()
        self._transport.resume_reading()

    def answered(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def hold(self) -> None:
        """Read no more from the client until gRPC has taken what there is."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def ended(self) -> None:
        """gRPC has nothing more to say."""
        if self._transport is not None:
            self._transport.close()


class _Inner(asyncio.Protocol):
    """The end of a passage at gRPC."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage

    def connection_made(self, transport: Any) -> None:
        self._passage.opened(transport)

    def data_received(self, data: bytes) -> None:
        self._passage.answered(data)

    def pause_writing(self) -> None:
        self._passage.hold()

    def resume_writing(self) -> None:
        self._passage.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self._passage.ended()
