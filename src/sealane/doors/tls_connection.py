"""One connection's TLS: a protocol to the socket outside, a transport to the door's own protocol inside.

The event loop's own TLS keeps hundreds of kilobytes for each connection, tells a door of it only after the handshake,
and shows one certificate for ever. Here all connections of a door share the buffer that they are received into, what a
stranger can make the node keep is bounded from the first byte, and each handshake takes the newest certificate.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, cast

from sealane.log import get_log
from sealane.sockets import SendsTogether, write_pieces

if TYPE_CHECKING:
    from sealane.doors.tls_porch import TlsPorch

log = get_log("sealane.doors.tls")

HANDSHAKE_BYTES_MAX = 16 << 10
"""What a client may send before its handshake is done: a certificate chain of several kilobytes fits."""
PIECE_BYTES = 64 << 10
"""Encrypted and decrypted at once, which is four TLS records: with one at a time it takes a sixth longer. OpenSSL keeps
buffers as large as the largest piece that they ever held, for as long as the connection lasts."""
STRANGER_PIECE_BYTES = 4 << 10
"""The same of what comes from someone who may still be a stranger."""
STRANGER_BYTES = 32 << 10
"""Whoever was heard for so long is none: that is twice what may come before the gate."""
_RECORD_START = b"\x16\x03"
"""How a client that speaks TLS begins."""
_HELLO_START = struct.Struct("!BHHBBH")
"""A record's head and that of the hello in it: type, version, length; type, length in three bytes."""

Inside = asyncio.BufferedProtocol | asyncio.Protocol
Rest = Literal["more", "later", "none"]
"""Of what comes: there is more now, there will be more, there is no more."""


class TlsConnection(SendsTogether, asyncio.BufferedProtocol, asyncio.Transport):
    """Made by `TlsPorch` for each that comes. The protocol inside hears of it once the handshake is done."""

    __slots__ = (
        "_answered",
        "_closing",
        "_deadline",
        "_first",
        "_held",
        "_incoming",
        "_inside",
        "_make_inside",
        "_outgoing",
        "_porch",
        "_received_bytes",
        "_taken_bytes",
        "_tls",
        "_transport",
    )

    def __init__(self, porch: TlsPorch, make_inside: Callable[[], Inside]) -> None:
        self._porch = porch
        self._make_inside = make_inside
        self._transport: asyncio.Transport | None = None
        self._inside: Inside | None = None
        """There once the handshake is done."""
        self._tls: ssl.SSLObject | None = None
        """There from the first byte: who says nothing costs nothing."""
        self._deadline: asyncio.TimerHandle | None = None
        self._first = b""
        """What has come before there is enough to tell what it is."""
        self._held = b""
        """What has come of its handshake and waits for its turn."""
        self._received_bytes = 0
        self._taken_bytes = 0
        """What the protocol inside was given, counted as long as that matters."""
        self._answered = False
        """Whether the node has said something in the handshake."""
        self._closing = False

    # --- from the socket ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = self._porch.came(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # No more of a stranger than is held back while others have their turn; the rest waits outside.
        return self._porch.scratch if self._inside is not None else self._porch.scratch[:HANDSHAKE_BYTES_MAX]

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing or self._transport is None:
            return
        received = self._porch.scratch[:nbytes]
        if self._inside is None and not self._porch.turns.take(self):
            self._held = bytes(received)
            self.pause_reading()
            return
        self._hear(received)

    def have_turn(self) -> None:
        """Go on with what was held back."""
        held, self._held = self._held, b""
        self.resume_reading()
        self._hear(memoryview(held))

    def _hear(self, received: memoryview) -> None:
        if self._tls is None:
            if not self._begin(received):
                return
            if self._first:
                self._incoming.write(self._first)
        piece_bytes = PIECE_BYTES if self._taken_bytes > STRANGER_BYTES else STRANGER_PIECE_BYTES
        for start in range(0, len(received), piece_bytes):
            count = self._incoming.write(received[start : start + piece_bytes])
            if self._inside is not None or self._shake_hands(count):
                self._take_in()
            if self._closing:
                return

    def eof_received(self) -> bool:
        if self._inside is not None and not self._closing:
            self._inside.eof_received()
        return False

    def pause_writing(self) -> None:
        if self._inside is not None:
            self._inside.pause_writing()

    def resume_writing(self) -> None:
        if self._inside is not None:
            self._inside.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._transport = None
        self._left_the_porch()
        inside, self._inside, self._tls = self._inside, None, None
        if inside is not None:
            inside.connection_lost(error)

    # --- the handshake ------------------------------------------------------------------------------------------------

    def _begin(self, received: memoryview) -> bool:
        """Look at how it begins before OpenSSL does, which takes memory for a hello of any length that is announced."""
        start = self._first + bytes(received[: _HELLO_START.size])
        if not start.startswith(_RECORD_START[: len(start)]):
            assert self._transport is not None
            self._transport.write(self._porch.word_to_plain_text)
            self._refuse("it does not speak TLS")
            return False
        if len(start) < _HELLO_START.size:
            self._first = start
            return False
        _, _, record_bytes, _, more, hello_bytes = _HELLO_START.unpack_from(start)
        if record_bytes < _HELLO_START.size or more or hello_bytes > HANDSHAKE_BYTES_MAX:
            self._refuse("its hello is not one that a client would send")
            return False
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = self._porch.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        return True

    def _shake_hands(self, count: int) -> bool:
        """Whether the handshake is done with the `count` bytes that have come."""
        assert self._tls is not None
        self._received_bytes += count
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._outgoing.pending:
                self._send()
                self._answered = True
            elif self._answered:
                self._porch.midway(self)
            if self._received_bytes > HANDSHAKE_BYTES_MAX:
                self._refuse(f"its handshake is longer than {HANDSHAKE_BYTES_MAX:,} bytes")
            return False
        except ssl.SSLError as error:
            self._send()  # The alert that tells the client why.
            self._refuse(error.reason or "its handshake failed")
            return False
        self._send()
        self._left_the_porch()
        self._inside = self._make_inside()
        self._inside.connection_made(self)
        return not self._closing

    def _refuse(self, why: str) -> None:
        self._porch.refused(why, self._transport)
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def _left_the_porch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._porch.left(self)

    # --- taking in ----------------------------------------------------------------------------------------------------

    def _take_in(self) -> None:
        """Hand on what can be decrypted."""
        inside = self._inside
        ended = False
        try:
            if isinstance(inside, asyncio.BufferedProtocol):
                ended = self._fill(inside)
            elif isinstance(inside, asyncio.Protocol):
                ended = self._hand_over(inside)
        except ssl.SSLError as error:
            log.debug("a connection is cut off", problem=error.reason, peer=self._porch.peer_of(self._transport))
            self._send()
            self.abort()
            return
        if self._outgoing.pending:
            self._send()  # Such as the answer to new keys.
        if ended and not self._closing:
            self.eof_received()
            self.close()

    def _fill(self, inside: asyncio.BufferedProtocol) -> bool:
        """Whether the peer has said that nothing more comes."""
        rest: Rest = "more"
        while rest == "more" and not self._closing:
            filled, rest = self._read_into(memoryview(inside.get_buffer(-1)))
            if filled:
                self._taken_bytes += filled
                inside.buffer_updated(filled)
        return rest == "none"

    def _read_into(self, buffer: memoryview) -> tuple[int, Rest]:
        """How much of the buffer is filled, and what there is beside that."""
        assert self._tls is not None
        read = self._tls.read
        filled, room = 0, len(buffer)
        try:
            while filled < room:
                count = cast(int, read(room - filled, buffer[filled:]))
                if not count:
                    return filled, "none"
                filled += count
        except ssl.SSLWantReadError:
            return filled, "later"
        return filled, "more"

    def _hand_over(self, inside: asyncio.Protocol) -> bool:
        assert self._tls is not None
        while not self._closing:
            try:
                data = self._tls.read(PIECE_BYTES)
            except ssl.SSLWantReadError:
                return False
            if not data:
                return True
            self._taken_bytes += len(data)
            inside.data_received(data)
        return False

    # --- the transport of the protocol inside -------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Encrypt and send; the pieces are not needed any more on return."""
        if self._closing or self._transport is None or self._tls is None:
            return
        sealed = []
        try:
            for data in list_of_data:
                view = memoryview(data).cast("B")
                for start in range(0, len(view), PIECE_BYTES):
                    self._tls.write(view[start : start + PIECE_BYTES])
                    sealed.append(self._outgoing.read())
        except ssl.SSLError as error:
            log.debug("a connection is cut off", problem=error.reason, peer=self._porch.peer_of(self._transport))
            self.abort()
            return
        if sealed:
            write_pieces(self._transport, sealed)

    def _send(self) -> None:
        if self._transport is not None and self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def close(self) -> None:
        """Say that nothing more comes, and close once all is sent."""
        if self._transport is None or self._closing:
            return
        self._closing = True
        if self._tls is not None and self._inside is not None:
            with suppress(ssl.SSLError):
                self._tls.unwrap()  # Its word is there at once; for the peer's nobody waits.
            self._send()
        self._transport.close()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def is_closing(self) -> bool:
        return self._closing or self._transport is None or self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        if name == "sslcontext":
            return self._tls.context if self._tls is not None else default
        return self._transport.get_extra_info(name, default) if self._transport is not None else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def is_reading(self) -> bool:
        return self._transport is not None and self._transport.is_reading()

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inside = cast(Inside, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._inside if self._inside is not None else self
