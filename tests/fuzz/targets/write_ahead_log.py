"""Segments of the write-ahead log, and their indexes, as recovery finds them: whatever is on the disk, it starts.

An input is two files, a segment and its index, and before them how long the first of them is. After recovery has mended
what can be mended, a second one finds nothing to mend, and the same entries.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

from xxhash import xxh3_64_intdigest

from sealane.engine.contract import PartitionKey
from sealane.engine.local import record
from sealane.engine.local.index import Row, SegmentIndex
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES
from sealane.engine.local.recovery import Recovered, recover
from sealane.engine.local.segment import HEADER_BYTES, INDEX_SUFFIX, SegmentHeader, scan, segment_name
from sealane.errors import FormatTooNew
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

_ORDERS, _CARTS = PartitionKey("default", "orders", 1, 0), PartitionKey("shop", "é", 2, 3)
_NONCE, _OTHER_NONCE = b"segment1", b"segment2"
_TIME_US = 1_760_000_000_000_000
_CUT = struct.Struct("<I")


class _MemoryFile:
    """Implements what recovery needs of `File`."""

    def __init__(self, data: bytearray) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._data[position : position + length])

    def write_at(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        written = b"".join(buffers)
        assert 0 <= position <= len(self._data), "recovery writes beyond what is there"
        self._data[position : position + len(written)] = written

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class _MemoryFiles:
    """Implements what recovery needs of `Files`."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = {name: bytearray(data) for name, data in files.items()}

    def open(self, name: str) -> _MemoryFile:
        return _MemoryFile(self._files[name])

    def exists(self, name: str) -> bool:
        return name in self._files

    def list(self, directory: str) -> list[str]:
        return sorted(name.removeprefix(f"{directory}/") for name in self._files)

    def remove(self, name: str) -> None:
        del self._files[name]

    def sync_directory(self, name: str) -> None:
        pass


def _segment(nonce: bytes, first_sequence: int, records: int) -> bytes:
    data = SegmentHeader(record.FORMAT, nonce, first_sequence, _TIME_US).encode()
    for number in range(records):
        items = record.pack([b"journal", b"entries"])
        entries: list[tuple[record.Entry, Any]] = [
            (record.describe(MESSAGES, _ORDERS, 1, 2 * number, 2, b"messages" * 3), b"messages" * 3),
            (record.describe(JOURNAL, _CARTS, 1, number, 2, items, flags=MANY), items),
        ]
        buffers, _ = record.encode_record(first_sequence + number, nonce, _TIME_US + number, entries)
        data += b"".join(buffers)
    return data + bytes(64)


def _index_of(segment: bytes, first_sequence: int) -> bytes:
    index = SegmentIndex(first_sequence)
    for found in scan(segment, segment_name(first_sequence)).records:
        index.last_sequence = found.head.sequence
        for entry, position in found.bodies():
            index.add(entry.partition, entry.kind, Row.of(entry, 1, position, found.head.time_us))
    return index.encode()


_FIRST, _SECOND = _segment(_NONCE, 1, 2), _segment(_OTHER_NONCE, 3, 1)
_EMPTY = record.encode_record(1, _NONCE, _TIME_US, [])[0]
SEEDS = (
    _CUT.pack(len(_FIRST)) + _FIRST,
    _CUT.pack(len(_FIRST)) + _FIRST + _index_of(_FIRST, 1),
    _CUT.pack(len(_FIRST)) + _FIRST[: HEADER_BYTES + 40] + bytes(300) + _FIRST[HEADER_BYTES + 340 :],
    _CUT.pack(999) + SegmentHeader(record.FORMAT, _NONCE, 1, _TIME_US).encode() + b"".join(map(bytes, _EMPTY)),
)


def check(data: bytes) -> bool:
    if len(data) < _CUT.size:
        return False
    cut = _CUT.size + _CUT.unpack_from(data)[0]
    first, index = data[_CUT.size : cut], data[cut:]
    # With a sound segment behind it, damage is known for what it is, and an index is believed if it is whole.
    alone, followed = {segment_name(1): first}, {segment_name(1): first, segment_name(3): _SECOND}
    try:
        once, again = _recovered_twice(_MemoryFiles(alone))
        # An engine writes a mark behind what it has recovered: without it, damage at the end is taken for a torn write.
        assert once.report.quarantined or _rows(once) == _rows(again)
        with_more, _ = _recovered_twice(_MemoryFiles(followed))
        assert len(_rows(with_more)) >= len(_rows(once))
        _rows(_recovered_twice(_MemoryFiles({**followed, segment_name(1) + INDEX_SUFFIX: index}))[0])
    except FormatTooNew:
        return False
    return bool(once.report.records)


def _recovered_twice(files: Any) -> tuple[Recovered, Recovered]:
    once, again = (recover(files, lambda: _TIME_US, iter(range(1, 99)).__next__, skip=set()) for _ in range(2))
    assert not again.report.repaired, "what was mended is whole"
    return once, again


def _rows(recovered: Recovered) -> list[Any]:
    """Every entry that is found, by its log."""
    segments = [*recovered.closed, *([recovered.active] if recovered.active else [])]
    return [
        (partition, kind, *row)
        for segment in segments
        for partition, kind, columns in segment.index.logs(0)
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Half of the time the checksums are made right again: what is behind them is looked at too."""
    changed = bytearray(mutate(data, choose))
    if choose.random() < 0.5:
        for magic in (b"SLRH", b"SLRT"):
            at = changed.find(magic)
            while at >= 0:
                _make_right(changed, at)
                at = changed.find(magic, at + 8)
        cut = _CUT.size + (_CUT.unpack_from(changed)[0] if len(changed) >= _CUT.size else 0)
        if cut + 8 < len(changed):
            changed[-8:] = xxh3_64_intdigest(bytes(changed[cut:-8])).to_bytes(8, "little")
        fixed = slice(_CUT.size, _CUT.size + HEADER_BYTES - 8)
        if len(changed) >= fixed.stop + 8 and choose.random() < 0.5:
            changed[fixed.stop : fixed.stop + 8] = xxh3_64_intdigest(bytes(changed[fixed])).to_bytes(8, "little")
    return bytes(changed)


def _make_right(data: bytearray, at: int) -> None:
    """The checksum at the end of a head block, whose length is in it."""
    if at + 48 > len(data):
        return
    end = at + int.from_bytes(data[at + 40 : at + 44], "little")
    if at + 48 < end <= len(data):
        data[end - 8 : end] = xxh3_64_intdigest(bytes(data[at + 4 : end - 8])).to_bytes(8, "little")


TARGET = Target("write_ahead_log", SEEDS, check, spoil)
