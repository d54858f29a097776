"""The batch: an Arrow record batch of messages with the metadata that belongs to all of them."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, final

import msgspec
import numpy as np
import pyarrow as pa

from sealane.message.columns import complete, kept_places, kept_schema
from sealane.message.plain import HEAD_BYTES, Plain, cut_plain, plain_payloads
from sealane.message.schema import (
    ALL_OPTIONAL,
    COLUMNS,
    CREATED,
    DELIVER_AT,
    EXPIRES,
    HEADERS,
    ID,
    NULLABLE,
    PAYLOAD,
    PRIORITY,
    PRIORITY_DEFAULT,
)

_ONE_ID = struct.Struct("16s")
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_ROWS_BY_HAND = 64
"""Payloads of so many plain messages are had from memory before Arrow has opened the batch."""
_BYTES_BY_HAND = 64 << 10
"""Up to about this size plain messages are cut out of a batch by a copy, which takes less than Arrow's encoding."""
_PLAIN_MASK = 1 << PRIORITY | 1 << EXPIRES | 1 << DELIVER_AT
_WIDTHS = {ID: 16, PRIORITY: 1, CREATED: 8, EXPIRES: 8, DELIVER_AT: 8}


class BatchMeta(msgspec.Struct, frozen=True, array_like=True):
    """What is true of a whole batch. A batch's ids are all given by the caller, or all generated."""

    given_ids: bool = False
    """The ids came from the caller, and enter the topic's id window."""
    producer: bytes | None = None
    sequence: int | None = None
    schema_id: int | None = None
    trace: str | None = None
    only: str | None = None
    """The one subscription that this batch is addressed to; used when dead letters are driven again."""
    envelope: bytes | None = None
    """The envelope of every one of its messages, instead of a column that would repeat it: most sealed batches have
    one, and whatever is cut out of them keeps it. Then the column is absent."""


DEFAULT_META = BatchMeta()


class Traits(NamedTuple):
    """What delivery must know about a batch before it looks at a message."""

    priority_min: int
    priority_max: int
    expires_min_us: int | None
    deliver_at_max_us: int | None

    @property
    def plain(self) -> bool:
        """Every priority is the default, and nothing expires or is delayed."""
        return self == PLAIN


PLAIN = Traits(PRIORITY_DEFAULT, PRIORITY_DEFAULT, None, None)


@final
class Batch:
    """Messages as a table. Immutable: slices share the memory of what they were cut from.

    `records` has exactly `SCHEMA`, `kept` the same without the columns that say nothing; either is made of the other
    when it is first asked for. Who makes a batch vouches for its content, as builders and `decode` do.
    """

    __slots__ = ("_absent", "_kept", "_nbytes", "_records", "_traits", "encoded", "exact", "layout", "meta", "whole")

    meta: BatchMeta
    exact: bool
    """Whether the buffers are known to hold these messages and nothing beside them, as those of a slice do not."""
    encoded: pa.Buffer | None
    """The Arrow message that `kept` was read from, which its columns keep in memory anyway; None if there was none."""
    layout: Plain | None
    """Where everything is in `encoded`, if it is known to hold plain messages: Arrow need not open it to tell."""
    whole: memoryview | None
    """What `encode` makes of it, where that is in memory anyway: `encoded`, with its head and metadata before it."""
    # One of the two is there, or `encoded` holds plain messages that nobody has looked at yet.
    _records: pa.RecordBatch
    _kept: pa.RecordBatch
    _absent: int | None
    _nbytes: int | None
    _traits: Traits | None

    def __init__(
        self,
        records: pa.RecordBatch | None,
        meta: BatchMeta = DEFAULT_META,
        *,
        absent: int | None = None,
        exact: bool = False,
        kept: pa.RecordBatch | None = None,
        encoded: pa.Buffer | None = None,
        whole: memoryview | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "_records", records)
        put(self, "_kept", kept)
        put(self, "meta", meta)
        put(self, "exact", exact)
        put(self, "encoded", encoded)
        put(self, "layout", None)
        put(self, "whole", whole)
        put(self, "_absent", absent)
        put(self, "_nbytes", None)
        put(self, "_traits", None)

    @classmethod
    def of_kept(
        cls,
        kept: pa.RecordBatch,
        meta: BatchMeta,
        absent: int,
        *,
        exact: bool = False,
        encoded: pa.Buffer | None = None,
        whole: memoryview | None = None,
    ) -> Batch:
        """A batch of which only the columns that say something are there."""
        return cls(None, meta, absent=absent, exact=exact, kept=kept, encoded=encoded, whole=whole)

    @classmethod
    def unread(cls, encoded: pa.Buffer, meta: BatchMeta, layout: Plain, whole: memoryview | None = None) -> Batch:
        """A batch of plain messages, known and not opened: Arrow reads it when someone asks for a column."""
        # Every publish passes here, some of them several times: not by way of `__init__`, which takes twice as long.
        batch = cls.__new__(cls)
        put = object.__setattr__
        put(batch, "_records", None)
        put(batch, "_kept", None)
        put(batch, "meta", meta)
        put(batch, "exact", True)
        put(batch, "encoded", encoded)
        put(batch, "layout", layout)
        put(batch, "whole", whole)
        put(batch, "_absent", ALL_OPTIONAL)
        put(batch, "_nbytes", layout.nbytes)
        put(batch, "_traits", PLAIN)
        return batch

    @property
    def records(self) -> pa.RecordBatch:
        """All columns."""
        if self._records is None:
            object.__setattr__(self, "_records", complete(self.kept, self.absent, self.meta.envelope))
        return self._records

    @property
    def kept(self) -> pa.RecordBatch:
        """The columns that say something."""
        if self._kept is None:
            places = kept_places(self.absent)
            if self._records is None:
                kept = pa.ipc.read_record_batch(self.encoded, kept_schema(self.absent))
            else:
                kept = self._records if len(places) == COLUMNS else self._records.select(places)
            object.__setattr__(self, "_kept", kept)
        return self._kept

    def unopened(self) -> memoryview:
        """The bytes that `layout` is about."""
        assert self.encoded is not None, "a batch whose layout is known is there as bytes"
        return memoryview(self.encoded)

    def column(self, place: int) -> pa.Array:
        """The column at this place of the schema."""
        if self._records is None and not self.absent >> place & 1:
            return self.kept.column(place - (self.absent & (1 << place) - 1).bit_count())
        return self.records.column(place)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a batch is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a batch is immutable: {name} cannot be deleted")

    def __len__(self) -> int:
        if self.layout is not None:
            return self.layout.rows
        length: int = (self._records if self._kept is None else self._kept).num_rows
        return length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.meta == other.meta and bool(self.records.equals(other.records))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        # Payloads, keys and headers stay out of logs and tracebacks.
        return f"<Batch of {len(self):,} messages, {self.nbytes:,} bytes>"

    @property
    def absent(self) -> int:
        """A bit for each column that says nothing: wholly null, or every priority the default."""
        if self._absent is None:
            object.__setattr__(self, "_absent", _absent_columns(self._records))
        return self._absent  # type: ignore[return-value]

    @property
    def traits(self) -> Traits:
        if self._traits is None:
            object.__setattr__(self, "_traits", _traits_of(self))
        return self._traits  # type: ignore[return-value]

    @property
    def nbytes(self) -> int:
        """The bytes this batch's messages occupy: of a slice its own, not its parent's. Absent columns are free."""
        if self._nbytes is None:
            object.__setattr__(self, "_nbytes", _occupied_bytes(self))
        return self._nbytes  # type: ignore[return-value]

    @property
    def first_created_us(self) -> int:
        """When the first message was made; 0 if there is none. Costs the same however many there are."""
        if self.layout is not None:
            return int(_INT64.unpack_from(self.unopened(), self.layout.times_at)[0])
        column = self.column(CREATED)
        if not len(column):
            return 0
        return int(_INT64.unpack_from(column.buffers()[1], 8 * column.offset)[0])

    def slice(self, start: int, stop: int) -> Batch:
        """The messages from `start` to before `stop`, without a copy."""
        if start == 0 and stop >= len(self):
            return self
        if start < 0 or stop < start:
            raise IndexError(f"slice {start}:{stop} of a batch of {len(self)}")
        if self._records is not None:
            return Batch(self._records.slice(start, stop - start), self.meta, absent=self._absent)
        return Batch.of_kept(self.kept.slice(start, stop - start), self.meta, self.absent)

    def cut(self, start: int, stop: int) -> Batch:
        """The same as a slice, for who encodes it next: few plain messages are copied, and are encoded by that."""
        layout = self.layout
        if layout is None or not 0 <= start < stop <= layout.rows or stop - start == layout.rows:
            return self.slice(start, stop)
        if layout.nbytes * (stop - start) > _BYTES_BY_HAND * layout.rows:
            return self.slice(start, stop)
        encoded, part = cut_plain(self.unopened(), layout, start, stop)
        return Batch.unread(pa.py_buffer(encoded), self.meta, part)

    def take(self, indices: np.ndarray) -> Batch:
        """The messages at these places, in this order, copied."""
        return Batch.of_kept(self.kept.take(pa.array(indices)), self.meta, self.absent, exact=True)

    def with_meta(self, meta: BatchMeta) -> Batch:
        """The same messages under other metadata."""
        if self.layout is not None:
            return Batch.unread(self.encoded, meta, self.layout)
        if meta.envelope != self.meta.envelope:
            return Batch.of_kept(self.kept, meta, self.absent, exact=self.exact, encoded=self.encoded)
        return Batch(self._records, meta, absent=self._absent, exact=self.exact, kept=self._kept, encoded=self.encoded)

    def payloads(self) -> list[bytes]:
        if self.layout is not None and self.layout.rows <= _ROWS_BY_HAND:
            return plain_payloads(self.unopened(), self.layout)
        payloads: list[bytes] = self.column(PAYLOAD).to_pylist()
        return payloads

    def ids(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """The ids of the messages from `start` to before `stop`."""
        first, last, _ = slice(start, stop).indices(len(self))
        if self.layout is not None:
            data = self.unopened()[HEAD_BYTES : self.layout.offsets_at]
        else:
            column = self.column(ID)
            if not len(column):
                return []
            data = memoryview(column.buffers()[1])[16 * column.offset : 16 * (column.offset + len(column))]
        # A sixth of the time that Arrow's own conversion of fixed-size values takes.
        return [value for (value,) in _ONE_ID.iter_unpack(data[16 * first : 16 * last])]


def offsets_of(column: pa.Array) -> np.ndarray:
    """The offsets of a binary, string or map column as they are in memory, for its own rows (one more than rows)."""
    if len(column) == 0:
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(column.buffers()[1], dtype=np.int32, count=len(column) + 1, offset=column.offset * 4)


def values_of(column: pa.Array, dtype: type[np.generic]) -> np.ndarray:
    """A column of numbers without nulls, as it is in memory. Arrow's own `to_numpy` loads pandas where there is one."""
    if len(column) == 0:
        return np.zeros(0, dtype=dtype)
    start = column.offset * np.dtype(dtype).itemsize
    return np.frombuffer(column.buffers()[1], dtype=dtype, count=len(column), offset=start)


def _absent_columns(records: pa.RecordBatch) -> int:
    rows = records.num_rows
    absent = 0
    for place in NULLABLE:
        if records.column(place).null_count == rows:
            absent |= 1 << place
    priorities = values_of(records.column(PRIORITY), np.int8)
    if not rows or (priorities == PRIORITY_DEFAULT).all():
        absent |= 1 << PRIORITY
    return absent


def _traits_of(batch: Batch) -> Traits:
    absent = batch.absent
    if absent & _PLAIN_MASK == _PLAIN_MASK or not len(batch):
        return PLAIN
    priority_min = priority_max = PRIORITY_DEFAULT
    if not absent & 1 << PRIORITY:
        priorities = values_of(batch.column(PRIORITY), np.int8)
        priority_min, priority_max = int(priorities.min()), int(priorities.max())
    expires_min_us = deliver_at_max_us = None
    # A slice may hold none of the times that its parent has.
    if not absent & 1 << EXPIRES and len(times := _known_times(batch.column(EXPIRES))):
        expires_min_us = int(times.min())
    if not absent & 1 << DELIVER_AT and len(times := _known_times(batch.column(DELIVER_AT))):
        deliver_at_max_us = int(times.max())
    return Traits(priority_min, priority_max, expires_min_us, deliver_at_max_us)


def _known_times(column: pa.Array) -> np.ndarray:
    return values_of(column.drop_null(), np.int64)


def _occupied_bytes(batch: Batch) -> int:
    total, rows = 0, len(batch)
    for place in kept_places(batch.absent):
        if width := _WIDTHS.get(place):
            total += rows * width
            continue
        column = batch.column(place)
        total += 4 * (rows + 1)
        if place == HEADERS:
            total += _entry_bytes(column)
        else:
            total += column.total_values_length
    return total


def _entry_bytes(column: pa.Array) -> int:
    buffers = column.buffers()
    first, stop = _reach(buffers[1], column.offset, len(column))
    total = 0
    for part, offsets in ((column.keys, buffers[4]), (column.items, buffers[7])):
        start, end = _reach(offsets, part.offset + first, stop - first)
        total += 4 * (stop - first + 1) + end - start
    return total


def _reach(offsets: pa.Buffer | None, first: int, count: int) -> tuple[int, int]:
    """Where the values of `count` rows from row `first` on start and end."""
    if not count or offsets is None:
        return 0, 0
    return _INT32.unpack_from(offsets, 4 * first)[0], _INT32.unpack_from(offsets, 4 * (first + count))[0]
