"""How the pieces of frames leave by a transport: in as few calls as can be, the long ones without a copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

LONG_BYTES = 64 << 10
"""More than this is handed to the kernel without the interpreter: it copies for a tenth of a millisecond and more, and
in a node the committing thread would wait for each such copy."""
_VECTOR_MAX = 1024
"""Linux takes at most this many buffers in one call (IOV_MAX)."""

_UVLOOP = "uvloop.loop"
"""Where the transports come from whose `writelines` is one call into the kernel."""
_PLAIN = "TCPTransport"
"""The one of those whose socket takes what was said as it is; another one is TLS, which has yet to encrypt it."""


class Writer(Protocol):
    """As much of a transport as is needed here."""

    def write(self, data: Any, /) -> None: ...
    def writelines(self, pieces: Any, /) -> None: ...


class SendsTogether:
    """A transport of our own whose `writelines` copies nothing and sends all of it at once."""

    __slots__ = ()


def write_pieces(writer: Writer, pieces: Sequence[Any]) -> None:
    """Hand all pieces to a transport that is not closing. A piece is a buffer whose length is its number of bytes.

    The head of a frame that is sent by itself wakes the peer for nothing, which takes as long as to send a megabyte.
    """
    kind = type(writer)
    is_uvloop = kind.__module__ == _UVLOOP
    if is_uvloop and kind.__name__ == _PLAIN and sum(map(len, pieces)) > LONG_BYTES:
        pieces = _beyond(_sent(writer, pieces), pieces)
        if not pieces:
            return
    if len(pieces) == 1:
        writer.write(pieces[0])
    elif is_uvloop or isinstance(writer, SendsTogether):
        writer.writelines(pieces)
    else:
        # Python's own transport copies what it gets this way, before 3.12, and early releases of 3.12 and 3.13 forget
        # to tell that writing is paused; `write` does neither.
        writer.writelines(pieces[:-1])
        writer.write(pieces[-1])


def _sent(transport: Any, pieces: Sequence[Any]) -> int:
    """How many bytes of it the kernel has taken, in a call that lets go of the interpreter, which uvloop's do not."""
    if transport.get_write_buffer_size():
        return 0  # What waits there goes first.
    try:
        # Once the transport has closed its socket, that says -1.
        return os.writev(transport.get_extra_info("socket").fileno(), pieces[:_VECTOR_MAX])
    except OSError:
        return 0  # Full, or broken: the transport finds that out too, and tells whom it concerns.


def _beyond(count: int, pieces: Sequence[Any]) -> Sequence[Any]:
    """The pieces without their first so many bytes."""
    for index, piece in enumerate(pieces):
        if count < len(piece):
            return [memoryview(piece)[count:], *pieces[index + 1 :]] if count else pieces[index:]
        count -= len(piece)
    return ()
