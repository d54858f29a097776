"""Reading what compaction wrote, in both of its formats.

A `.log` file is a segment's header and then records of one entry each. Its messages are zstd-compressed batches; its
journal entries are framed together and compressed (`ZIPPED`). An `.arrow` file is a plain Arrow IPC file of an unsealed
topic's messages: any Arrow tool opens it, and a batch of it is read here by its place alone (`ARROW`).
"""

from __future__ import annotations

import struct

import msgspec
import pyarrow as pa

from sealane.engine.contract import Packed, PartitionKey, Stored
from sealane.engine.local import record
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES, SEALED, Bytes
from sealane.errors import CorruptData, InvalidBatch
from sealane.message import SCHEMA, Batch, BatchMeta, decode
from sealane.message.codec import packed_size
from sealane.security.at_rest.sealing import Sealer

ZIPPED = 4
"""Flag: the (plain, framed) body is compressed: u64 length, then zstd."""
ARROW = 8
"""Flag: the bytes are an Arrow IPC record-batch message inside an Arrow file."""

META_FIELD = b"sealane.meta"
BASE_FIELD = b"sealane.base"
COUNT_FIELD = b"sealane.count"

_LENGTH = struct.Struct("<Q")
_SCHEMA_MESSAGE = SCHEMA.serialize().to_pybytes()
_decode_meta = msgspec.msgpack.Decoder(BatchMeta).decode


def open_messages(
    raw: Bytes, *, partition: PartitionKey, base: int, count: int, flags: int, sealer: Sealer | None
) -> list[Stored]:
    """The batches of one stored entry whose checksum was found right. `CorruptData`, `KeyUnavailable` otherwise.

    Memory that may be written to is the batches' own from here on.
    """
    try:
        if flags & ARROW:
            batches = [_open_arrow(raw)]
        else:
            plain = _open_body(raw, partition, MESSAGES, base, count, flags, sealer)
            batches = [decode(item, limits=None) for item in record.unpack(plain, flags)]
    except (InvalidBatch, pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise CorruptData(f"a stored batch cannot be read: {error}") from error
    stored = []
    for batch in batches:
        stored.append(Stored(base, batch))
        base += len(batch)
        count -= len(batch)
    if count:
        raise CorruptData(f"a stored entry holds {-count:+,} messages more than its head says")
    return stored


def open_packed(
    raw: Bytes, *, partition: PartitionKey, base: int, count: int, flags: int, sealer: Sealer | None
) -> list[Stored | Packed]:
    """The same, and a batch that is stored compressed stays so."""
    if not flags & (ARROW | MANY):
        plain = memoryview(_open_body(raw, partition, MESSAGES, base, count, flags, sealer)).cast("B")
        try:
            size = packed_size(plain)
        except (InvalidBatch, struct.error) as error:
            raise CorruptData(f"a stored batch cannot be read: {error}") from error
        if size is not None:
            return [Packed(base, count, plain, size)]
        raw, flags = plain, flags & ~SEALED
    return [*open_messages(raw, partition=partition, base=base, count=count, flags=flags, sealer=sealer)]


def open_journal(
    raw: Bytes, *, partition: PartitionKey, base: int, count: int, flags: int, sealer: Sealer | None
) -> list[tuple[int, bytes]]:
    """The journal entries of one stored entry, each with its number."""
    try:
        plain = _open_body(raw, partition, JOURNAL, base, count, flags, sealer)
        items = record.unpack(plain, flags)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise CorruptData(f"stored journal entries cannot be read: {error}") from error
    if len(items) != count:
        raise CorruptData(f"a stored entry holds {len(items):,} journal entries, its head says {count:,}")
    return [(base + number, bytes(item)) for number, item in enumerate(items)]


def zip_body(plain: bytes) -> bytes:
    """Compress a framed body, as `ZIPPED` says."""
    return _LENGTH.pack(len(plain)) + pa.compress(plain, codec="zstd", asbytes=True)


def _open_body(
    raw: Bytes, partition: PartitionKey, kind: int, base: int, count: int, flags: int, sealer: Sealer | None
) -> Bytes | pa.Buffer:
    plain: Bytes | pa.Buffer = raw
    if flags & SEALED:
        if sealer is None:
            raise CorruptData("a sealed entry cannot be read without its key")
        place = record.associated(partition, kind, base, count)
        if isinstance(raw, memoryview) and not raw.readonly:
            plain = sealer.open_in_place(partition.domain, raw, place)
        else:
            plain = sealer.open(partition.domain, raw, place)
    if flags & ZIPPED:
        (length,) = _LENGTH.unpack_from(plain)
        plain = pa.decompress(memoryview(plain)[_LENGTH.size :], decompressed_size=length, codec="zstd")
    return plain


def _open_arrow(raw: Bytes) -> Batch:
    # Only a stream reader gives a batch's own metadata, and a stream begins with its schema.
    with pa.ipc.open_stream(pa.py_buffer(b"".join((_SCHEMA_MESSAGE, raw)))) as stream:
        records, metadata = stream.read_next_batch_with_custom_metadata()
    packed = metadata.get(META_FIELD) if metadata is not None else None
    # What was read of a message of its own shares memory with no other: it is sent on without a copy.
    return Batch(records, exact=True) if packed is None else Batch(records, _decode_meta(packed), exact=True)
