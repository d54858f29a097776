"""Where each stored entry is: one log's places in compact columns, and a segment's places as a file beside it."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from sealane.engine.contract import PartitionKey, Span
from sealane.engine.local import record
from sealane.engine.local.record import JOURNAL, MESSAGES, Entry


class Row(NamedTuple):
    """One stored entry: offsets [base, base + count) are the `length` bytes at `position` of file number `file`."""

    base: int
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody calls
    file: int
    position: int
    length: int
    time_us: int
    checksum: int
    flags: int

    @property
    def stop(self) -> int:
        return self.base + self.count

    @classmethod
    def of(cls, entry: Entry, file: int, position: int, time_us: int) -> Row:
        """The row for an entry of a record, whose body is at `position` of the file."""
        return cls(entry.base, entry.count, file, position, entry.body_bytes, time_us, entry.body_checksum, entry.flags)


_TYPES = ("Q", "I", "I", "Q", "Q", "Q", "Q", "B")
"""The type of each column, in the order of `Row`: 49 bytes an entry."""


class LogIndex:
    """The places of one log's entries, in order of offset.

    What is not in it is not there: the gaps between `start` and `end` are what damage has cost.
    """

    __slots__ = ("_columns", "end", "start")

    def __init__(self) -> None:
        self._columns: tuple[array[int], ...] = tuple(array(code) for code in _TYPES)
        self.start = 0
        self.end = 0

    def __len__(self) -> int:
        return len(self._columns[0])

    def row(self, number: int) -> Row:
        return Row(*(column[number] for column in self._columns))

    def rows(self) -> Iterator[Row]:
        return (Row(*fields) for fields in zip(*self._columns, strict=True))

    def append(self, row: Row) -> None:
        """Add the log's next entry. It may leave a gap (what is missing was lost) but never overlaps."""
        bases, counts = self._columns[0], self._columns[1]
        if bases and row[0] < bases[-1] + counts[-1]:
            raise ValueError(f"entry at {row[0]} overlaps the one at {bases[-1]}")
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self.end = max(self.end, row[0] + row[1])

    def find(self, offset: int) -> int:
        """The number of the first row that holds `offset` or comes after it; `len` when there is none."""
        bases, counts = self._columns[0], self._columns[1]
        number = bisect_right(bases, offset) - 1
        if number >= 0 and offset < bases[number] + counts[number]:
            return number
        return number + 1

    def remove(self, base: int, file: int) -> bool:
        """Quarantine one entry: it reads as absent from here on. False when it is no longer there."""
        bases = self._columns[0]
        number = bisect_left(bases, base)
        if number == len(bases) or bases[number] != base or self._columns[2][number] != file:
            return False
        for column in self._columns:
            del column[number]
        return True

    def trim(self, before: int) -> None:
        """Forget the rows wholly below `before`. Never moves backwards."""
        if before <= self.start:
            return
        self.start = before
        self.end = max(self.end, before)
        bases, counts = self._columns[0], self._columns[1]
        gone = bisect_left(bases, before)
        if gone and bases[gone - 1] + counts[gone - 1] > before:
            gone -= 1
        if gone:
            for column in self._columns:
                del column[:gone]

    def offset_at(self, time_us: int) -> int:
        """The base of the first entry committed at or after `time_us`, or the end."""
        number = bisect_left(self._columns[5], time_us)
        return max(self.start, self._columns[0][number]) if number < len(self) else self.end

    def committed_at(self, offset: int) -> int | None:
        """When the entry that holds `offset`, or the first one after it, was committed."""
        number = self.find(offset)
        return self._columns[5][number] if number < len(self) else None

    def lost(self) -> tuple[Span, ...]:
        """The offsets between start and end that no row holds."""
        bases = np.array(self._columns[0], dtype=np.uint64)
        stops = bases + np.array(self._columns[1], dtype=np.uint64)
        begins = np.append(np.uint64(self.start), stops)
        ends = np.append(bases, np.uint64(self.end))
        return tuple(Span(int(begins[gap]), int(ends[gap])) for gap in np.flatnonzero(ends > begins))

    def extend(self, columns: tuple[np.ndarray, ...]) -> None:
        """Add many rows at once, given as one array a column, in order and after all others."""
        if not len(columns[0]):
            return
        for column, more in zip(self._columns, columns, strict=True):
            column.frombytes(np.ascontiguousarray(more, dtype=column.typecode).tobytes())
        self.end = max(self.end, int(columns[0][-1]) + int(columns[1][-1]))

    def replace(self, files: set[int], rows: Iterable[Row]) -> None:
        """Put `rows` in the place of every row that points into `files`, in one step."""
        kept = [row for row in self.rows() if row.file not in files]
        merged = sorted([*kept, *(row for row in rows if row.stop > self.start)])
        self._columns = tuple(array(code, column) for code, column in zip(_TYPES, _transposed(merged), strict=True))


def _transposed(rows: list[Row]) -> Iterable[Iterable[int]]:
    return zip(*rows, strict=True) if rows else [()] * len(_TYPES)


class SegmentIndex:
    """Every sound entry of one segment, in order of writing: what `<segment>.idx` keeps, so that opening need not scan.

    `ends` has, for each log the segment mentions, the offset after its last entry, lost ones included.
    """

    __slots__ = ("_columns", "_numbers", "ends", "first_sequence", "last_sequence", "partitions", "time_us")

    def __init__(self, first_sequence: int) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = first_sequence - 1
        self.time_us = 0
        self.partitions: list[PartitionKey] = []
        self.ends: dict[tuple[PartitionKey, int], int] = {}
        self._numbers: dict[PartitionKey, int] = {}
        self._columns: tuple[array[int], ...] = (array("I"), array("B"), *(array(code) for code in _TYPES))

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, partition: PartitionKey, kind: int, row: Row) -> None:
        self.mention(partition, kind, row.stop)
        for column, value in zip(self._columns, (self._numbers[partition], kind, *row), strict=True):
            column.append(value)

    def mention(self, partition: PartitionKey, kind: int, stop: int) -> None:
        """Note that the log reaches `stop` here, be it by an entry that was lost."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self.partitions)
            self.partitions.append(partition)
        key = (partition, kind)
        self.ends[key] = max(self.ends.get(key, 0), stop)

    def sealed_positions(self) -> np.ndarray:
        """Where the sealed bodies begin. A copy: the segment may grow meanwhile."""
        positions, flags = np.array(self._columns[5]), np.array(self._columns[9])
        return positions[(flags & record.SEALED) != 0] if len(positions) else np.zeros(0, dtype=np.int64)

    def logs(self, file: int) -> Iterator[tuple[PartitionKey, int, tuple[np.ndarray, ...]]]:
        """The rows of each log as arrays, a column each, with `file` as their file number."""
        if not len(self):
            return
        numbers, kinds, *columns = (np.frombuffer(column, dtype=column.typecode) for column in self._columns)
        columns[2] = np.full(len(self), file, dtype=columns[2].dtype)
        groups = numbers.astype(np.uint64) * 4 + kinds
        order = np.argsort(groups, kind="stable")
        bounds = np.flatnonzero(np.diff(groups[order])) + 1
        for rows in np.split(order, bounds):
            partition = self.partitions[int(numbers[rows[0]])]
            yield partition, int(kinds[rows[0]]), tuple(column[rows] for column in columns)

    def encode(self) -> bytes:
        """The file: a head, the partitions' names, the ends, the columns, and a checksum over all of it."""
        names = []
        for partition in self.partitions:
            domain, topic = partition.domain.encode(), partition.topic.encode()
            names.append(
                _PARTITION.pack(
                    len(domain),
                    len(topic),
                    partition.partition,
                    partition.incarnation,
                    self.ends.get((partition, MESSAGES), _NOWHERE),
                    self.ends.get((partition, JOURNAL), _NOWHERE),
                )
                + domain
                + topic
            )
        columns = [column.tobytes() for column in self._columns]
        head = _HEAD.pack(
            _MAGIC, _VERSION, self.first_sequence, self.last_sequence, self.time_us, len(names), len(self)
        )
        content = b"".join([head, *names, *columns])
        return content + _CHECKSUM.pack(record.checksum(content))

    @classmethod
    def decode(cls, data: bytes) -> SegmentIndex | None:
        """What `encode` wrote; None when it is damaged or of another version: then the segment is scanned instead."""
        if len(data) < _HEAD.size + _CHECKSUM.size:
            return None
        content = memoryview(data)[: -_CHECKSUM.size]
        if _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0] != record.checksum(content):
            return None
        magic, version, first_sequence, last_sequence, time_us, partitions, length = _HEAD.unpack_from(content)
        if magic != _MAGIC or version != _VERSION:
            return None
        index = cls(first_sequence)
        index.last_sequence = last_sequence
        index.time_us = time_us
        try:
            return index if index._fill(content, partitions, length) else None
        except (struct.error, UnicodeDecodeError, ValueError):
            return None

    def _fill(self, content: memoryview, partitions: int, length: int) -> bool:
        """The names and columns behind the head; whether they are what it says, and nothing else."""
        at = _HEAD.size
        for _ in range(partitions):
            domain_bytes, topic_bytes, number, incarnation, messages, journal = _PARTITION.unpack_from(content, at)
            at += _PARTITION.size
            domain = str(content[at : at + domain_bytes], "utf-8")
            topic = str(content[at + domain_bytes : at + domain_bytes + topic_bytes], "utf-8")
            at += domain_bytes + topic_bytes
            partition = PartitionKey(domain, topic, incarnation, number)
            for kind, end in ((MESSAGES, messages), (JOURNAL, journal)):
                if end != _NOWHERE:
                    self.mention(partition, kind, end)
        for column in self._columns:
            column.frombytes(content[at : at + length * column.itemsize])
            at += length * column.itemsize
        return at == len(content) and max(self._columns[0], default=-1) < len(self.partitions)


_MAGIC = b"SEALIDX\0"
_VERSION = 1
_NOWHERE = 2**64 - 1
_HEAD = struct.Struct("<8sQQQQQQ")
_PARTITION = struct.Struct("<HHIQQQ")
_CHECKSUM = struct.Struct("<Q")
