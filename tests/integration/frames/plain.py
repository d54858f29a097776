"""A client as someone writes it from the document: blocking sockets, a length of four bytes, and nothing of Sealane."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

DEADLINE_SECONDS = 30.0


class Plain:
    """A connection. Everything waits for at most `DEADLINE_SECONDS`."""

    def __init__(self, address: str, *, receive_buffer_bytes: int = 0, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket: socket.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(DEADLINE_SECONDS)
        try:
            self.socket.connect((host, int(port)))
            if tls is not None:
                self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        except OSError:
            self.socket.close()
            raise
        self._unread, self._at = b"", 0

    @classmethod
    def producer(cls, address: str, **options: object) -> Self:
        opened = cls(address, **options)  # type: ignore[arg-type]
        opened.send(b"PRODUCER")
        return opened

    @classmethod
    def consumer(cls, address: str, **options: object) -> Self:
        opened = cls(address, **options)  # type: ignore[arg-type]
        opened.send(b"CONSUMER")
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End as a process does that is killed with something unread: at once, and without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # --- saying -------------------------------------------------------------------------------------------------------

    def send(self, *payloads: bytes) -> None:
        self.socket.sendall(b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads))

    def done(self) -> bytes | None:
        """Say that all is said, and wait for the end: what the node says before it, and None if that is nothing."""
        self.socket.shutdown(socket.SHUT_WR)
        rest = list(self)
        return rest[-1] if rest else None

    # --- hearing ------------------------------------------------------------------------------------------------------

    def receive(self) -> bytes | None:
        """The next frame; None at the end."""
        head = self._exactly(4)
        if head is None:
            return None
        (length,) = struct.unpack(">I", head)
        return self._exactly(length)

    def take(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        for _ in range(count):
            frame = self.receive()
            assert frame is not None, f"the connection ended after {len(found)} of {count} frames: {found[-1:]}"
            found.append(frame)
        return found

    def __iter__(self) -> Iterator[bytes]:
        """All that comes until the end; what is cut off there is no frame."""
        with suppress(ConnectionError):
            while (frame := self.receive()) is not None:
                yield frame

    def nothing_comes(self, seconds: float = 0.2) -> bool:
        self.socket.settimeout(seconds)
        try:
            return self.receive() is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(DEADLINE_SECONDS)

    def _exactly(self, count: int) -> bytes | None:
        while len(self._unread) - self._at < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                return None
            self._unread, self._at = self._unread[self._at :] + piece, 0
        self._at += count
        return self._unread[self._at - count : self._at]


def numbered(count: int, *, start: int = 0, length: int = 0) -> list[bytes]:
    """Payloads that tell their place, each of at least so many bytes."""
    return [str(number).encode().ljust(length, b".") for number in range(start, start + count)]


def numbers(payloads: Iterable[bytes]) -> list[int]:
    return [int(payload.rstrip(b".")) for payload in payloads]
