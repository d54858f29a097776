"""One end of a conversation over the native protocol, which hears whatever bytes there are."""

from __future__ import annotations

from collections.abc import Iterator

from sealane.wire.connection import Connection, Received, Role, State
from sealane.wire.frames import new_scratch

FRAME_BYTES_MAX = 1 << 20
_SCRATCH = new_scratch()


def in_conversation(role: Role) -> Connection:
    """Past the greeting: whatever may be said in a conversation is understood."""
    connection = Connection(role, _SCRATCH, 0.0)
    connection.state = State.OPEN
    connection._reader.frame_bytes_max = FRAME_BYTES_MAX
    return connection


def heard(connection: Connection, data: bytes) -> Iterator[Received]:
    """What it makes of the bytes, as they fit into its buffer. Raises `ProtocolError` after what was sound."""
    while data:
        buffer = connection.get_buffer()
        taken = min(len(buffer), len(data))
        buffer[:taken] = data[:taken]
        yield from connection.received(taken, 0.0)
        data = data[taken:]
