"""A batch as bytes: what goes into the log, over the wire, and under the seal.

    u8 version   u8 flags   u16 absent columns   u32 length of the metadata
    metadata (msgpack), zeros up to a multiple of 8
    one Arrow IPC record-batch message without its schema, which both sides know

A column that says nothing (wholly null; every priority the default) is left out of the message, and its bit set in the
header: that is 29 of 57 bytes of overhead for a message that has only a payload.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Literal

import msgspec
import pyarrow as pa

from sealane.errors import FormatTooNew, InvalidBatch, LimitExceeded
from sealane.message.batch import DEFAULT_META, Batch, BatchMeta
from sealane.message.columns import kept_places, kept_schema
from sealane.message.ipc_message import inspect, misfit, nulls_claimed
from sealane.message.limits import Limits
from sealane.message.packing import pack, unpack, unpack_foreign, unpacked_size
from sealane.message.plain import check_plain
from sealane.message.schema import ALL_OPTIONAL, ENVELOPE, HEADERS, SCHEMA, SCHEMA_VERSION
from sealane.message.validation import check_messages, check_structure, first_line

HEADER_BYTES = 8
META_BYTES_MAX = 4096
"""Metadata of foreign bytes: a producer id, a trace context and a subscription's name need a few hundred bytes."""
FRAMING_BYTES_MAX = 8192
"""What an encoding may be larger than `batch_bytes_max`: header, metadata, Arrow's own metadata and padding."""

_HEADER = struct.Struct("<BBHI")
_ZSTD = 1
_FLAGS = _ZSTD
_ARROW_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError)
_NUMBER_MAX = 2**63 - 1

_encode_meta = msgspec.msgpack.Encoder().encode
_decode_meta = msgspec.msgpack.Decoder(BatchMeta).decode


def encode_parts(batch: Batch, *, compression: Literal["zstd"] | None = None) -> tuple[bytes, pa.Buffer]:
    """The encoding in two pieces that follow each other, for writers that gather: the body is not copied again."""
    absent = batch.absent
    if batch.encoded is not None and compression is None:
        whole = batch.whole
        head = _head(0, absent, batch.meta) if whole is None else bytes(whole[: len(whole) - batch.encoded.size])
        return head, batch.encoded
    records = batch.kept
    if not batch.exact:
        # Arrow pads what it writes of a slice with what follows in memory: other people's messages. A copy has none.
        records = pa.concat_batches([records, records.slice(0, 0)])
    body: pa.Buffer = records.serialize()
    flags = 0
    if compression is not None:
        if compression != "zstd":
            raise ValueError(f"compression {compression!r} is not known; there is 'zstd'")
        flags = _ZSTD
        body = pack(body)
    return _head(flags, absent, batch.meta), body


def encode(batch: Batch, *, compression: Literal["zstd"] | None = None) -> bytes:
    """The batch as bytes; of a slice only its own messages are written."""
    return b"".join(encode_parts(batch, compression=compression))


def encoding(batch: Batch) -> bytes | memoryview:
    """What `encode` gives; of a batch that came in that form, the memory that it came in."""
    return encode(batch) if batch.whole is None else batch.whole


def packed_size(data: memoryview) -> int | None:
    """What an encoding that this node wrote unpacks to; None if it is not compressed."""
    flags, _, _, body_at = _read_head(data, foreign=False)
    return unpacked_size(data[body_at:]) if flags & _ZSTD else None


def decode(
    data: bytes | bytearray | memoryview | pa.Buffer, *, limits: Limits | None, unpacked_bytes_max: int | None = None
) -> Batch:
    """The batch that `data` holds; its columns share the memory of `data`, which must not change any more.

    With `limits` the bytes are foreign: everything is checked, and a batch that comes back keeps every rule of the
    contract; they may be compressed only where `unpacked_bytes_max` says to how much they may unpack. `limits=None` is
    for bytes that this node wrote and whose checksum or seal has already been verified.
    Raises `InvalidBatch`, `InvalidMessage` or `LimitExceeded`; of own bytes `FormatTooNew` too.
    """
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    if limits is not None and buffer.size > limits.batch_bytes_max + FRAMING_BYTES_MAX:
        raise LimitExceeded("batch", limits.batch_bytes_max, buffer.size, setting="limits.batch_bytes_max")
    view = memoryview(buffer).cast("B")
    flags, absent, meta, body_at = _read_head(view, foreign=limits is not None)
    body = buffer.slice(body_at)
    if limits is None:
        records, encoded = _read_own(body, absent, flags)
        return Batch.of_kept(records, meta, absent, exact=True, encoded=encoded)
    if flags & _ZSTD:
        if unpacked_bytes_max is None:
            raise InvalidBatch("it is compressed: foreign bytes may not be, a few could unpack to any size")
        body = unpack_foreign(body, unpacked_bytes_max)
    # What another sender writes differently is put into our words when it is stored.
    whole = view if view[:body_at] == _head(0, absent, meta) else None
    if absent == ALL_OPTIONAL and body.address % 8 == 0:
        layout = check_plain(memoryview(body).cast("B"), limits)
        if layout is not None:
            return Batch.unread(body, meta, layout, whole)
    records = _read_foreign(body, absent, limits)
    check_structure(records)
    batch = Batch.of_kept(records, meta, absent, exact=True, encoded=body, whole=whole)
    check_messages(batch, limits)
    return batch


@lru_cache(maxsize=64)
def _parts(absent: int) -> list[tuple[str, int, int]]:
    """Name, field nodes and buffers of the kept columns: a map has three nodes more (entries, names, values)."""
    parts = []
    for place in kept_places(absent):
        field = SCHEMA.field(place)
        if place == HEADERS:
            parts.append((field.name, 4, 9))
        else:
            parts.append((field.name, 1, 3 if pa.types.is_binary(field.type) else 2))
    return parts


def _head(flags: int, absent: int, meta: BatchMeta) -> bytes:
    packed = b"" if meta == DEFAULT_META else _encode_meta(meta)
    return _HEADER.pack(SCHEMA_VERSION, flags, absent, len(packed)) + packed + bytes(-len(packed) % 8)


def _read_head(view: memoryview, *, foreign: bool) -> tuple[int, int, BatchMeta, int]:
    if len(view) < HEADER_BYTES:
        raise InvalidBatch(f"it is cut off after {len(view)} bytes")
    version, flags, absent, meta_bytes = _HEADER.unpack_from(view)
    if version > SCHEMA_VERSION and not foreign:
        raise FormatTooNew("the batch", version, SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise InvalidBatch(f"it has version {version}, this Sealane reads version {SCHEMA_VERSION}")
    if flags & ~_FLAGS:
        raise InvalidBatch(f"flags {flags:#x} are not known")
    if absent & ~ALL_OPTIONAL:
        raise InvalidBatch(f"columns {absent & ~ALL_OPTIONAL:#x} are missing, which every message has")
    body_at = HEADER_BYTES + meta_bytes + -meta_bytes % 8
    if body_at > len(view):
        raise InvalidBatch(f"it claims {meta_bytes:,} bytes of metadata and ends after {len(view):,}")
    if not meta_bytes:
        return flags, absent, DEFAULT_META, body_at
    if foreign and meta_bytes > META_BYTES_MAX:
        raise InvalidBatch(f"its metadata has {meta_bytes:,} bytes, the limit is {META_BYTES_MAX:,}")
    try:
        meta = _decode_meta(view[HEADER_BYTES : HEADER_BYTES + meta_bytes])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidBatch(f"its metadata cannot be read: {error}") from None
    if foreign:
        for field, number in (("sequence", meta.sequence), ("schema_id", meta.schema_id)):
            if number is not None and not 0 <= number <= _NUMBER_MAX:
                raise InvalidBatch(f"its metadata has {field} {number}, which goes from 0 to {_NUMBER_MAX}")
        if meta.envelope is not None and not absent >> ENVELOPE & 1:
            raise InvalidBatch("its envelope is in the metadata and in a column: which one holds cannot be told")
    return flags, absent, meta, body_at


def _read_own(body: pa.Buffer, absent: int, flags: int) -> tuple[pa.RecordBatch, pa.Buffer]:
    """The columns, and the message that they are in, as it is without compression."""
    try:
        if flags & _ZSTD:
            body = unpack(body)
        return pa.ipc.read_record_batch(body, kept_schema(absent)), body
    except (*_ARROW_ERRORS, struct.error) as error:
        raise InvalidBatch(f"Arrow cannot read it: {first_line(error)}") from None


def _read_foreign(body: pa.Buffer, absent: int, limits: Limits) -> pa.RecordBatch:
    view = memoryview(body).cast("B")
    shape = inspect(view)
    if shape.rows > limits.batch_messages_max:
        raise LimitExceeded(
            "batch", limits.batch_messages_max, shape.rows, unit="messages", setting="limits.batch_messages_max"
        )
    parts = _parts(absent)
    nodes, buffers = sum(part[1] for part in parts), sum(part[2] for part in parts)
    if shape.rows < 1 or shape.nodes != nodes or shape.buffers != buffers:
        raise InvalidBatch(
            f"it claims {shape.rows:,} messages in {shape.nodes} fields and {shape.buffers} buffers; "
            f"its columns have {nodes} and {buffers}"
        )
    if not absent >> HEADERS & 1:
        # Arrow ends the process, rather than raise, when it builds a map whose entries or names have nulls.
        entries = [part[0] for part in parts].index("headers") + 1
        if nulls_claimed(view, shape, entries) or nulls_claimed(view, shape, entries + 1):
            raise InvalidBatch("header names may not be null", column="headers")
    if body.address % 8:
        # Arrow reads integers in place; on some machines that needs them aligned.
        body = pa.py_buffer(body.to_pybytes())
    try:
        return pa.ipc.read_record_batch(body, kept_schema(absent))
    except _ARROW_ERRORS as error:
        column = misfit(view, shape, parts)
        raise InvalidBatch(f"Arrow cannot read it: {first_line(error)}", column=column) from None
