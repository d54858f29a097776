"""The messages of an Arrow IPC stream, one after the other, every length checked before Arrow reads anything."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sealane.errors import InvalidBatch
from sealane.message.ipc_message import PREFIX_BYTES, body_bytes_of

_CONTINUATION = 0xFFFFFFFF
_PREFIX = struct.Struct("<II")


def messages_in(data: memoryview) -> Iterator[memoryview]:
    """Each message with its prefix and body, up to the mark that ends a stream or the end of the data.

    Raises `InvalidBatch` for data that is cut off, or goes on behind the end of a stream.
    """
    at = 0
    while at < len(data):
        if len(data) - at < PREFIX_BYTES:
            raise InvalidBatch("it is cut off in the middle of a message")
        continuation, metadata_bytes = _PREFIX.unpack_from(data, at)
        if continuation != _CONTINUATION:
            raise InvalidBatch("it does not begin as an Arrow IPC message does; files and older forms are not taken")
        flat_at = at + PREFIX_BYTES
        if not metadata_bytes:
            if flat_at != len(data):
                raise InvalidBatch("it goes on behind the end of its stream")
            return
        body_at = flat_at + metadata_bytes
        if body_at > len(data):
            raise InvalidBatch("it is cut off in the middle of a message")
        stop = body_at + body_bytes_of(data[flat_at:body_at])
        if not body_at <= stop <= len(data):
            raise InvalidBatch("it is cut off in the middle of a message")
        yield data[at:stop]
        at = stop
