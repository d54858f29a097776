"""The record: what the write-ahead log and compacted files are made of. Pure: bytes in, bytes out.

    record = head block · bodies · tail copy of the head block · trailer        (all multiples of 8 bytes)

One record is one group commit, so it is atomic: it counts when its head (or the tail copy) and every body pass their
checks. The head names each entry's partition and offsets; the tail copy repeats it, so that a damaged head still tells
which offsets are concerned and where their bodies are. Each body has a checksum of its own: a flipped bit costs one
entry, not the group. The nonce belongs to one file: bytes of another file, or bytes that a message carries, never pass
for a record of this one.

A body is one item (an encoded batch, or a journal entry), or several with `MANY` set, framed by `pack`; with `SEALED`
set it is encrypted as a whole, with `associated` bound to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from sealane.engine.contract import PartitionKey

FORMAT = 2
"""The version that is written. Version 1 kept its time in whole seconds."""

MESSAGES = 1
JOURNAL = 2

SEALED = 1
"""Flag: the body is encrypted."""
MANY = 2
"""Flag: the (plain) body is several items, framed by `pack`."""

NONCE_BYTES = 8
ENTRIES_MAX = 1 << 20
"""More entries than a group can hold: a head that claims more is damaged, and must not make us allocate."""

_HEAD_MAGIC = b"SLRH"
_TAIL_MAGIC = b"SLRT"
_END_MAGIC = b"SLRE"
_TRAILER = struct.Struct("<I4s")
_ENTRY = struct.Struct("<BBHHHIIQQQQQ")
_CHECKSUM = struct.Struct("<Q")
_PREFIX = struct.Struct("<4sHH8s")

_STRIDE_BYTES = 32 << 10
"""Of what a checksum is made at once."""


class _Layout(NamedTuple):
    """How one format version lays out the fixed part of a head block, and what its time field counts."""

    fixed: struct.Struct
    time_unit_us: int


_LAYOUTS = {
    1: _Layout(struct.Struct("<4sHH8sQQIII"), 1_000_000),
    2: _Layout(struct.Struct("<4sHH8sQQQII"), 1),
}
"""Every version this code reads. Reading an old one upgrades it: callers only ever see a `Head`."""

Bytes = bytes | memoryview


class Entry(NamedTuple):
    """What the head says about one body: `count` messages (or journal entries) of a partition from `base` on."""

    kind: int
    flags: int
    partition: PartitionKey
    epoch: int
    base: int
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody calls
    body_bytes: int
    body_checksum: int

    @property
    def stop(self) -> int:
        return self.base + self.count


class Head(NamedTuple):
    version: int
    nonce: bytes
    sequence: int
    time_us: int
    entries: tuple[Entry, ...]
    head_bytes: int
    record_bytes: int

    def bodies(self) -> Iterator[tuple[Entry, int]]:
        """Each entry with the place of its body, counted from the start of the record."""
        position = self.head_bytes
        for entry in self.entries:
            yield entry, position
            position += _aligned(entry.body_bytes)


def checksum(body: Bytes) -> int:
    """Of a long body in strides, for which the library does not let go of the interpreter: a thread beside a busy loop
    gets it back half a millisecond later, which is ten times as long as the sum of a megabyte takes.
    """
    if len(body) <= _STRIDE_BYTES:
        return int(xxh3_64_intdigest(body))
    summed = xxh3_64()
    view = memoryview(body)
    for start in range(0, len(view), _STRIDE_BYTES):
        summed.update(view[start : start + _STRIDE_BYTES])
    return int(summed.intdigest())


def describe(
    kind: int, partition: PartitionKey, epoch: int, base: int, count: int, body: Bytes, *, flags: int = 0
) -> Entry:
    """The entry for a finished body."""
    return Entry(kind, flags, partition, epoch, base, count, len(body), checksum(body))


def encode_record(
    sequence: int,
    nonce: bytes,
    time_us: int,
    entries: Sequence[tuple[Entry, Bytes]],
    *,
    version: int = FORMAT,
) -> tuple[list[Bytes], Head]:
    """The buffers to write one after another, and the head as a reader will see it."""
    layout = _LAYOUTS[version]
    parts = [b""]
    bodies_bytes = 0
    for entry, _ in entries:
        kind, flags, partition, epoch, base, count, body_bytes, body_checksum = entry
        domain, topic = _names(partition.domain, partition.topic)
        parts.append(
            _ENTRY.pack(
                kind,
                flags,
                len(domain),
                len(topic),
                0,
                partition.partition,
                count,
                partition.incarnation,
                epoch,
                base,
                body_bytes,
                body_checksum,
            )
        )
        parts.append(domain)
        parts.append(topic)
        bodies_bytes += _aligned(body_bytes)
    entries_bytes = sum(map(len, parts))
    head_bytes = _aligned(layout.fixed.size + entries_bytes) + _CHECKSUM.size
    record_bytes = 2 * head_bytes + bodies_bytes + _TRAILER.size
    time = time_us // layout.time_unit_us
    parts[0] = layout.fixed.pack(
        _HEAD_MAGIC, version, 0, nonce, record_bytes, sequence, time, head_bytes, len(entries)
    )[4:]
    parts.append(bytes(head_bytes - 8 - layout.fixed.size - entries_bytes))
    checked = b"".join(parts)
    block = checked + _CHECKSUM.pack(xxh3_64_intdigest(checked))

    buffers: list[Bytes] = [_HEAD_MAGIC + block]
    for entry, body in entries:
        buffers.append(body)
        if padding := -entry.body_bytes % 8:
            buffers.append(bytes(padding))
    buffers.append(_TAIL_MAGIC + block + _TRAILER.pack(head_bytes, _END_MAGIC))
    head = Head(version, nonce, sequence, time_us, tuple(entry for entry, _ in entries), head_bytes, record_bytes)
    return buffers, head


def read_head(data: Bytes, position: int, *, tail: bool = False) -> Head | None:
    """The head block at `position` (with `tail`, a tail copy), or None unless every check holds.

    Only the block itself is checked; whether the record it describes fits the file is for the caller to see.
    """
    if position < 0 or position + _PREFIX.size > len(data):
        return None
    magic, version, _, nonce = _PREFIX.unpack_from(data, position)
    layout = _LAYOUTS.get(version)
    if magic != (_TAIL_MAGIC if tail else _HEAD_MAGIC) or layout is None:
        return None
    if position + layout.fixed.size > len(data):
        return None
    fixed = layout.fixed.unpack_from(data, position)
    record_bytes, sequence, time, head_bytes, entry_count = fixed[4:]
    end = position + head_bytes
    smallest = layout.fixed.size + entry_count * _ENTRY.size + _CHECKSUM.size
    if entry_count > ENTRIES_MAX or head_bytes % 8 or head_bytes < smallest or end > len(data):
        return None
    view = memoryview(data)
    if _CHECKSUM.unpack_from(data, end - 8)[0] != xxh3_64_intdigest(view[position + 4 : end - 8]):
        return None
    entries = []
    bodies_bytes = 0
    at = position + layout.fixed.size
    for _ in range(entry_count):
        if at + _ENTRY.size > end - _CHECKSUM.size:
            return None
        (kind, flags, domain_bytes, topic_bytes, _, number, count, incarnation, epoch, base, body_bytes, check) = (
            _ENTRY.unpack_from(data, at)
        )
        at += _ENTRY.size
        names_end = at + domain_bytes + topic_bytes
        if names_end > end - _CHECKSUM.size:
            return None
        try:
            domain, topic = _texts(bytes(view[at : at + domain_bytes]), bytes(view[at + domain_bytes : names_end]))
        except UnicodeDecodeError:
            return None
        at = names_end
        bodies_bytes += _aligned(body_bytes)
        partition = PartitionKey(domain, topic, incarnation, number)
        entries.append(Entry(kind, flags, partition, epoch, base, count, body_bytes, check))
    if record_bytes != 2 * head_bytes + bodies_bytes + _TRAILER.size:
        return None
    # A coarse time is read as its last instant, so that "committed at or after" never misses a message.
    time_us = time * layout.time_unit_us + layout.time_unit_us - 1
    return Head(version, nonce, sequence, time_us, tuple(entries), head_bytes, record_bytes)


def record_start(tail_position: int, head: Head) -> int:
    """Where the record begins whose tail copy was found at `tail_position`."""
    return tail_position + head.head_bytes + _TRAILER.size - head.record_bytes


def has_tail(data: Bytes, start: int, head: Head) -> bool:
    """Whether the record at `start` ends in a sound tail copy of this head."""
    end = start + head.record_bytes
    position = end - _TRAILER.size - head.head_bytes
    if end > len(data) or _TRAILER.unpack_from(data, end - _TRAILER.size) != (head.head_bytes, _END_MAGIC):
        return False
    return read_head(data, position, tail=True) == head


def head_copies(data: Bytes, start: int, head: Head, *, from_tail: bool) -> tuple[bytes, bytes]:
    """Head block and tail (copy and trailer) of a record of which one of the two is sound: what a repair writes."""
    view = memoryview(data)
    at = start + head.record_bytes - _TRAILER.size - head.head_bytes if from_tail else start
    block = bytes(view[at + 4 : at + head.head_bytes])
    return _HEAD_MAGIC + block, _TAIL_MAGIC + block + _TRAILER.pack(head.head_bytes, _END_MAGIC)


def head_mark(version: int, nonce: bytes) -> bytes:
    """The bytes that every head block of this file begins with: what to search for after damage."""
    return _PREFIX.pack(_HEAD_MAGIC, version, 0, nonce)


def tail_mark(version: int, nonce: bytes) -> bytes:
    return _PREFIX.pack(_TAIL_MAGIC, version, 0, nonce)


def any_head_mark(version: int) -> bytes:
    """As `head_mark`, when the nonce itself is lost."""
    return _PREFIX.pack(_HEAD_MAGIC, version, 0, bytes(NONCE_BYTES))[:8]


def associated(partition: PartitionKey, kind: int, base: int, count: int) -> bytes:
    """What a sealed body is bound to: moved to another place, it no longer opens."""
    domain, topic = _names(partition.domain, partition.topic)
    place = _ASSOCIATED.pack(len(domain), len(topic), kind, partition.partition, partition.incarnation, base, count)
    return place + domain + topic


_ASSOCIATED = struct.Struct("<HHIIQQQ")


def packed_bytes(items: Sequence[Bytes]) -> int:
    """How long several items are as one body."""
    return _aligned(4 * (len(items) + 1)) + sum(_aligned(len(item)) for item in items)


def pack(items: Sequence[Bytes]) -> bytes:
    """Frame several items as one body: their number, their lengths, then each on an 8-byte boundary."""
    body = bytearray(packed_bytes(items))
    pack_into(memoryview(body), items)
    return bytes(body)


def pack_into(body: memoryview, items: Sequence[Bytes]) -> None:
    """The same into memory of the caller's, `packed_bytes(items)` of it."""
    lengths = list(map(len, items))
    table = struct.pack(f"<{len(items) + 1}I", len(items), *lengths)
    body[: len(table)] = table
    end = len(table)
    for item, length in zip(items, lengths, strict=True):
        start = _aligned(end)
        body[end:start] = bytes(start - end)
        end = start + length
        body[start:end] = item
    body[end:] = bytes(len(body) - end)


def unpack(body: Bytes, flags: int) -> list[memoryview]:
    """The items of a plain body. The body passed its check, so a frame that does not fit is a bug: ValueError."""
    view = memoryview(body)
    if not flags & MANY:
        return [view]
    (count,) = struct.unpack_from("<I", view)
    lengths = struct.unpack_from(f"<{count}I", view, 4)
    items = []
    at = _aligned(4 * (count + 1))
    for length in lengths:
        items.append(view[at : at + length])
        at += _aligned(length)
    if at != _aligned(len(view)):
        raise ValueError(f"a body of {len(view)} bytes frames items of {at}")
    return items


def _aligned(length: int) -> int:
    return (length + 7) & ~7


@lru_cache(maxsize=65_536)
def _names(domain: str, topic: str) -> tuple[bytes, bytes]:
    return domain.encode(), topic.encode()


@lru_cache(maxsize=65_536)
def _texts(domain: bytes, topic: bytes) -> tuple[str, str]:
    return domain.decode(), topic.decode()
