"""The write-ahead log: the active segment that records are appended to, and the one prepared to follow it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from sealane.engine.local import record
from sealane.engine.local.files import File, Files
from sealane.engine.local.index import SegmentIndex
from sealane.engine.local.record import Bytes, Entry
from sealane.engine.local.segment import HEADER_BYTES, SPARE_NAME, WAL_DIRECTORY, SegmentHeader, segment_name
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.space import Lacking, Space

_GROWTH = 4
"""How much longer than the last a segment is, until it reaches its full length."""
_LARGE_RECORD_BYTES = 64 << 10
"""Where records are larger than this on average, the next segment's space is only taken and not written in advance: a
small record is synced in two thirds of the time where zeros are on disk already, to a large one it makes no difference,
and writing everything twice takes a tenth of the throughput."""
_FILL_STEP_BYTES = 1 << 20
"""How much is zero-filled and synced at once: commits that share the disk do not wait long behind it. With 4 MiB the
slowest hundredth of single publishes took 2.2 ms, with 1 MiB 1.4 ms."""
_TAKE_STEP_BYTES = 16 << 20
"""How much space is taken at once where nothing is written."""


@dataclass(slots=True)
class Segment:
    """One segment, as long as anything in it is of use. `index` has what has landed in it."""

    number: int
    """What index rows call this file."""
    name: str
    header: SegmentHeader
    capacity: int
    index: SegmentIndex
    end: int = 0
    """Where the next record goes; 0: not even the header is written."""
    indexed: bool = field(default=False)
    """Whether its index has been saved beside it."""
    cached: bool = field(default=True)
    """Whether the system may have it in its page cache."""


class Written(NamedTuple):
    """Where a record landed. It is durable."""

    segment: Segment
    time_us: int
    places: list[tuple[Entry, int]]


class Wal:
    """Appends records. `write` may run on any thread, one call at a time; the rest belongs to the loop's thread."""

    def __init__(
        self,
        files: Files,
        settings: StorageSettings,
        space: Space,
        *,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        number: Callable[[], int],
        next_sequence: int,
        last_time_us: int = 0,
        active: Segment | None = None,
    ) -> None:
        self._files = files
        self._settings = settings
        self._space = space
        self._clock = clock
        self._entropy = entropy
        self._number = number
        self._next_sequence = next_sequence
        self._time_us = last_time_us
        self._spare: tuple[File, int] | None = None
        self._spare_lock = threading.Lock()
        self._filling: File | None = None
        self._filled_bytes = 0
        self._file = files.open(active.name) if active is not None else None
        self.active = active
        self.sync_seconds = 0.0
        """How long the last record took to sync."""
        self.written_bytes = 0
        """In records, since this was made."""
        self.marked = False
        """Whether the last record is a mark, which holds nothing and proves that what is before it was durable."""
        self.ending = False
        """Set it to have the next record begin a segment of its own, as soon as one is ready."""
        self.closed: list[Segment] = []
        """Segments that a write has filled, oldest first; whoever looks after them takes them from here."""
        self._were_large = False
        """Whether the records of the segment before this one were, on average."""

    @property
    def next_sequence(self) -> int:
        """The number of the next record: all before it are durable."""
        return self._next_sequence

    @property
    def room_bytes(self) -> int:
        """What still fits into the active segment."""
        return self.active.capacity - max(self.active.end, HEADER_BYTES) if self.active is not None else 0

    @property
    def spare_ready(self) -> bool:
        return self._spare is not None

    @property
    def spare_bytes(self) -> int:
        """How long the next segment is to be."""
        if self.active is None:
            return min(self._settings.segment_bytes_first, self._settings.segment_bytes)
        return min(self._settings.segment_bytes, _GROWTH * self.active.capacity)

    @property
    def spare_missing_bytes(self) -> int:
        """How much of it has yet to be allocated."""
        return self.spare_bytes - self._filled_bytes

    def write(self, entries: Sequence[tuple[Entry, Bytes]]) -> Written:
        """Append one record and return once it is durable. After an `OSError` the log must not be written again.

        `StorageFull` comes before anything has reached the disk: the log is as it was.
        """
        time_us = self._time_us = max(self._time_us, self._clock())
        segment, file = self.active, self._file
        nonce = segment.header.nonce if segment is not None else self._entropy(record.NONCE_BYTES)
        buffers, head = record.encode_record(self._next_sequence, nonce, time_us, entries)
        over = self.ending and self._spare is not None
        if segment is None or file is None or over or head.record_bytes > self.room_bytes:
            nonce = self._entropy(record.NONCE_BYTES)
            buffers, head = record.encode_record(self._next_sequence, nonce, time_us, entries)
            segment, file = self._next_segment(nonce, time_us, HEADER_BYTES + head.record_bytes)
        if segment.end == 0:
            buffers.insert(0, segment.header.encode())
        self._write_or_cut(file, segment.end, buffers)
        before_us = self._clock()
        file.sync()
        self.sync_seconds = max(0, self._clock() - before_us) / 1e6
        start = segment.end or HEADER_BYTES
        segment.end = start + head.record_bytes
        segment.index.last_sequence = head.sequence
        segment.index.time_us = time_us
        self._next_sequence += 1
        self.written_bytes += head.record_bytes
        self.marked = not entries
        return Written(segment, time_us, [(entry, start + position) for entry, position in head.bodies()])

    def claim_spare(self) -> Lacking | None:
        """Hold the room that the next segment will take, before it is filled; says what is lacking if there is none."""
        return self._space.claim(SPARE_NAME, self.spare_bytes, missing_bytes=self.spare_missing_bytes)

    def fill_spare(self) -> bool:
        """Prepare a part of the next segment; True once it is ready. Blocking; an `OSError` leaves nothing behind."""
        if self._spare is not None:
            return True
        wanted = self.spare_bytes
        file = self._filling
        if file is None:
            file = self._filling = self._files.open(SPARE_NAME, create=True)
        try:
            large = self._records_are_large()
            step = _TAKE_STEP_BYTES if large else _FILL_STEP_BYTES
            file.zero_fill(min(wanted, file.size + step), written=not large)
        except OSError:
            self.discard_spare()
            raise
        size = self._filled_bytes = file.size
        if size < wanted:
            return False
        with self._spare_lock:
            if self._space.claim(SPARE_NAME, size, missing_bytes=0) is None:
                self._filling = None
                self._filled_bytes = 0
                self._spare = (file, size)
                return True
        self.discard_spare()  # A commit could not wait for it, and took its room.
        return False

    def _records_are_large(self) -> bool:
        """Of the newest segment that has any: one that has just begun says nothing of what comes."""
        segment = self.active
        records = 0 if segment is None else self._next_sequence - segment.header.first_sequence
        if segment is None or records == 0:
            return self._were_large
        return segment.end / records > _LARGE_RECORD_BYTES

    def discard_spare(self) -> None:
        """Give the space of a half-prepared segment back."""
        if self._filling is not None:
            self._filling.close()
            self._filling = None
            self._filled_bytes = 0
            self._files.remove(SPARE_NAME)
        if self._spare is None:
            self._space.release(SPARE_NAME)

    def close(self) -> None:
        for file in (self._file, self._filling, self._spare[0] if self._spare is not None else None):
            if file is not None:
                file.close()
        self._file = self._filling = self._spare = None

    def _write_or_cut(self, file: File, position: int, buffers: list[Bytes]) -> None:
        try:
            file.write_at(position, buffers)
        except OSError as error:
            if not self._space.is_full(error):
                raise
            # Only a part was written and nothing was promised: without that part the log is as it was.
            file.truncate(position)
            raise self._space.exhausted().error() from error

    def _spare_and_room(self, name: str, bytes_min: int) -> tuple[File | None, int]:
        """The prepared segment if there is one, and how long the next one is, under whose name that room is now held.
        Raises `StorageFull`.

        One step for the thread that prepares: either it has become ready before, or its room is gone.
        """
        with self._spare_lock:
            spare, ready_bytes = self._spare or (None, 0)
            if ready_bytes >= bytes_min:
                self._space.renamed(SPARE_NAME, name)
                return spare, ready_bytes
            capacity = max(bytes_min, self.spare_bytes)
            lacking = self._space.take_over(SPARE_NAME, name, capacity, missing_bytes=capacity - ready_bytes)
        if lacking is not None:
            raise lacking.error()
        return spare, capacity

    def _next_segment(self, nonce: bytes, time_us: int, bytes_min: int) -> tuple[Segment, File]:
        name = segment_name(self._next_sequence)
        spare, capacity = self._spare_and_room(name, bytes_min)
        if spare is not None:
            file = spare
            self._files.rename(SPARE_NAME, name)
            # Only now: until its old name is free, nobody may begin to prepare the next one under it.
            self._spare = None
        else:
            file = self._files.open(name, create=True)
            self._files.sync_directory(WAL_DIRECTORY)
        self._take_space(file, capacity)
        if self.active is not None and self._file is not None:
            self._were_large = self._records_are_large()
            self._file.close()
            self.closed.append(self.active)
        header = SegmentHeader(record.FORMAT, nonce, self._next_sequence, time_us)
        segment = Segment(self._number(), name, header, capacity, SegmentIndex(self._next_sequence))
        self.active, self._file = segment, file
        self.ending = False
        return segment, file

    @staticmethod
    def _take_space(file: File, capacity: int) -> None:
        """For a segment that was not prepared, or not for records of this length.

        Written as it grows it would cost several times as much: each sync changes what the file system knows of it, and
        nothing can go past the page cache.
        """
        # Nothing was promised yet: whether the record can be written, writing and syncing it tells.
        with suppress(OSError):
            file.zero_fill(capacity, written=False)
