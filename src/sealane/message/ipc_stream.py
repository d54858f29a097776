"""An Arrow IPC stream of messages that a stranger built: looked at, message by message, before Arrow reads it.

Whoever sends Arrow over HTTP or gRPC has columns of their own choice and order. Arrow would believe such a stream: that
its buffers may be decompressed, to any size, that an entry of a dictionary may be repeated a million times, that a map
has no nulls. So only columns of a message are taken, of types that become what a message has, and plainly encoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from sealane.errors import InvalidBatch, LimitExceeded
from sealane.message.ipc_message import PREFIX_BYTES, body_bytes_of, inspect, nulls_claimed
from sealane.message.schema import SCHEMA
from sealane.message.validation import first_line

STREAM_BATCHES_MAX = 1_000
"""Record batches of one stream: each is checked while others wait."""
STREAM_SCHEMA_BYTES_MAX = 16 * 1024
"""What describes the columns of a stream: nine of them take about 1 KiB."""

_PREFIX = struct.Struct("<II")
_CONTINUATION = 0xFFFFFFFF
_ARROW_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError)


def read_stream(data: bytes | bytearray | memoryview) -> pa.Table:
    """The messages of the stream, for `from_arrow`. Raises `InvalidBatch` or `LimitExceeded`."""
    buffer = pa.py_buffer(data)
    if buffer.address % 8:
        # Arrow reads integers in place; on some machines that needs them aligned.
        buffer = pa.py_buffer(buffer.to_pybytes())
    pieces = _pieces(buffer)
    schema = _read_schema(next(pieces, None))
    batches: list[pa.RecordBatch] = []
    for piece in pieces:
        if len(batches) == STREAM_BATCHES_MAX:
            count = len(batches) + 1
            raise LimitExceeded("stream", STREAM_BATCHES_MAX, count, unit="record batches", setting="none changes it")
        batches.append(_read_batch(piece, schema))
    return pa.Table.from_batches(batches, schema=schema)


def _pieces(buffer: pa.Buffer) -> Iterator[pa.Buffer]:
    """The messages of the stream, each with its prefix and its body, up to the mark of its end."""
    view = memoryview(buffer).cast("B")
    at = 0
    while at < len(view):
        if len(view) - at < PREFIX_BYTES:
            raise InvalidBatch(f"the Arrow stream is cut off after {len(view):,} bytes")
        continuation, metadata_bytes = _PREFIX.unpack_from(view, at)
        if continuation != _CONTINUATION:
            raise InvalidBatch("the Arrow stream has no IPC continuation marker where a message should start")
        if not metadata_bytes:
            if at + PREFIX_BYTES != len(view):
                raise InvalidBatch(f"{len(view) - at - PREFIX_BYTES:,} bytes follow the end of the Arrow stream")
            return
        if metadata_bytes % 8 or metadata_bytes > len(view) - at - PREFIX_BYTES:
            raise InvalidBatch(f"the Arrow stream claims {metadata_bytes:,} bytes of metadata and is cut off")
        body_at = at + PREFIX_BYTES + metadata_bytes
        body_bytes = body_bytes_of(view[at + PREFIX_BYTES : body_at])
        if not 0 <= body_bytes <= len(view) - body_at:
            raise InvalidBatch(
                f"the Arrow stream claims a body of {body_bytes:,} bytes, {len(view) - body_at:,} follow"
            )
        yield buffer.slice(at, body_at + body_bytes - at)
        at = body_at + body_bytes + -body_bytes % 8


def _read_schema(piece: pa.Buffer | None) -> pa.Schema:
    if piece is None:
        raise InvalidBatch("the Arrow stream is empty; it starts with its schema")
    if piece.size > STREAM_SCHEMA_BYTES_MAX:
        raise LimitExceeded("schema of the stream", STREAM_SCHEMA_BYTES_MAX, piece.size, setting="none changes it")
    try:
        schema = pa.ipc.read_schema(piece)
    except _ARROW_ERRORS as error:
        raise InvalidBatch(f"Arrow cannot read the schema of the stream: {first_line(error)}") from None
    try:
        _check_columns(schema)
    except UnicodeDecodeError:
        raise InvalidBatch("the name of a column is no UTF-8") from None
    return schema.remove_metadata()


def _check_columns(schema: pa.Schema) -> None:
    for field in schema:
        if field.name in SCHEMA.names and not _is_plain(field.type):
            wanted = SCHEMA.field(field.name).type
            raise InvalidBatch(f"{field.type} does not become {wanted}; send it as {wanted}", column=field.name)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether it is one run of values, or a map of such: what is sent is all that there is."""
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_text(kind.item_type)
    return (
        _is_text(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_timestamp(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _read_batch(piece: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    view = memoryview(piece).cast("B")
    shape = inspect(view)
    nodes = 0
    for field in schema:
        if pa.types.is_map(field.type):
            # Arrow ends the process, rather than raise, when it builds a map whose entries or names have nulls.
            if nulls_claimed(view, shape, nodes + 1) or nulls_claimed(view, shape, nodes + 2):
                raise InvalidBatch("header names may not be null", column=field.name)
            nodes += 3
        nodes += 1
    if shape.nodes != nodes:
        raise InvalidBatch(f"a record batch of the stream has {shape.nodes} fields, its schema {nodes}")
    if not 0 <= shape.rows <= piece.size:
        raise InvalidBatch(f"a record batch of {piece.size:,} bytes claims {shape.rows:,} messages")
    try:
        return pa.ipc.read_record_batch(piece, schema)
    except _ARROW_ERRORS as error:
        raise InvalidBatch(f"Arrow cannot read it: {first_line(error)}") from None
