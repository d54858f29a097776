"""What one end of a connection says, in as few sends as can be: each is a call into the kernel, and wakes the peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sealane.wire.frames import JOINED_BYTES, Buffer, joined


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Outbox:
    """What is said first within a pass of the event loop goes out at once, and the rest of that pass together.

    `send` is given pieces and their length in all; whoever has it knows whether that is too much for the peer.
    """

    __slots__ = ("_call_soon", "_flushing", "_length", "_pieces", "_send")

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], Cancellable], send: Callable[[list[Buffer], int], None]
    ) -> None:
        self._call_soon = call_soon
        self._send = send
        self._pieces: list[Buffer] = []
        self._length = 0
        self._flushing: Cancellable | None = None
        """There once something was sent in this pass."""

    def write(self, pieces: list[Buffer]) -> None:
        length = sum(map(len, pieces))
        if self._flushing is None:
            self._flushing = self._call_soon(self.flush)
            self._send(pieces, length)
            return
        self._pieces.extend(pieces)
        self._length += length
        if self._length > JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what waits, without waiting for the pass to end."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._pieces:
            pieces, length = joined(self._pieces, self._length), self._length
            self._pieces, self._length = [], 0
            self._send(pieces, length)

    def discard(self) -> None:
        """The connection is gone: send nothing more."""
        self._pieces, self._length = [], 0
        self.flush()
