"""Reading the same thing from many payloads at once: a place in each of them, moved on together.

All payloads lie in one array of bytes. A read takes bytes without a look at where a payload ends, since there are some
behind the last one, and then asks whether it went too far: such a row is refused, and stands at its end from then on,
where every further read refuses it again. So nothing that bytes say, however false, reaches outside of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

PADDING_BYTES = 16
"""Before the first and behind the last byte: the longest number has ten, the widest read two words."""

_ONE = np.uint64(1)
_CONTINUES = np.uint64(0x8080808080808080)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
# From eight groups of seven bits to one of 56: neighbours are moved together, pairs, then fours, then eights.
_JOINS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(by))
    for low, high, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_WORD_BYTES = 8
_OFFSET_BYTES = 4


class SharedBytes:
    """The bytes of all payloads of a batch, with zeros around them."""

    __slots__ = ("bytes", "buffer")

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.bytes = np.zeros(len(data) + 2 * PADDING_BYTES, dtype=np.uint8)
        self.bytes[PADDING_BYTES : PADDING_BYTES + len(data)] = data
        self.buffer = pa.py_buffer(self.bytes)

    def at(self, places: Int64s, dtype: str) -> npt.NDArray[Any]:
        """What begins at each of these places, as a value of that type."""
        width = np.dtype(dtype).itemsize
        # A value may begin at any byte: neighbours of this view overlap.
        windows: npt.NDArray[Any] = np.ndarray((len(self.bytes) - width + 1,), dtype, self.buffer, 0, (1,))
        return windows[places]

    def slices(self, starts: Int64s, lengths: Int64s) -> pa.Array:
        """A binary array of these parts, which come one after the other and do not overlap."""
        bounds = np.empty(2 * len(starts) + 1, dtype=np.int32)
        bounds[0:-1:2] = starts
        bounds[1::2] = starts + lengths
        bounds[-1] = bounds[-2] if len(starts) else 0
        # Arrow's arrays have no gaps, so that every other value is what lies between two parts.
        with_gaps = pa.Array.from_buffers(pa.binary(), 2 * len(starts), [None, pa.py_buffer(bounds), self.buffer])
        return with_gaps.take(pa.array(np.arange(0, 2 * len(starts), 2)))


class Cursor:
    """Some of the rows, in their order: where each one is (`at`), where it ends, and whether it is sound so far."""

    __slots__ = ("shared", "at", "end", "ok")

    def __init__(self, shared: SharedBytes, at: Int64s, end: Int64s, ok: Bools) -> None:
        self.shared = shared
        self.at = at
        self.end = end
        self.ok = ok

    @classmethod
    def over(cls, payloads: pa.Array) -> Cursor:
        """At the beginning of each payload of a binary array; a null is as long as it says, mostly nothing."""
        rows = len(payloads)
        _, offsets, data = payloads.buffers()
        # Of no rows there may be not even one offset.
        bounds = np.zeros(1, dtype=np.int64)
        if rows:
            bounds = np.frombuffer(offsets, np.int32, rows + 1, payloads.offset * _OFFSET_BYTES).astype(np.int64)
        first, last = int(bounds[0]), int(bounds[-1])
        held = np.frombuffer(data, dtype=np.uint8)[first:last] if last > first else np.empty(0, dtype=np.uint8)
        bounds += PADDING_BYTES - first
        return cls(SharedBytes(held), bounds[:-1].copy(), bounds[1:], np.ones(rows, dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.at)

    def of(self, rows: Rows) -> Cursor:
        """A cursor for these rows alone; what it does is made known by `put`."""
        return Cursor(self.shared, self.at[rows], self.end[rows], self.ok[rows])

    def put(self, rows: Rows, cursor: Cursor) -> None:
        """Take over where the cursor of these rows has come to."""
        self.at[rows] = cursor.at
        self.ok[rows] = cursor.ok

    def refuse(self, bad: Bools) -> None:
        """These rows are corrupt."""
        if bad.any():
            self.ok &= ~bad
            self.at = np.where(bad, self.end, self.at)

    def skip(self, lengths: Int64s | int) -> Int64s:
        """Move on by that many bytes, and say where each was; a row with fewer left is refused."""
        starts = self.at
        self.at = starts + lengths
        self.refuse(self.at > self.end)
        return starts

    def bytes(self) -> npt.NDArray[np.uint8]:
        """One byte of each."""
        return self.shared.bytes[self.skip(1)]

    def longs(self) -> Int64s:
        """A number of each, as Avro writes it: seven bits a byte, the sign in the lowest bit."""
        first = self.shared.bytes[self.at]
        if not (first & 0x80).any():
            self.skip(1)
            raw = first.astype(np.uint64)
        else:
            raw = self._many_bytes()
        return (raw >> _ONE).view(np.int64) ^ -(raw & _ONE).view(np.int64)

    def _many_bytes(self) -> UInt64s:
        word = self.shared.at(self.at, "<u8")
        last = ~word & _CONTINUES
        below = (last & -last) - _ONE  # All bits up to the first byte that ends a number; all there are, if none does.
        raw = word & below & _SEVENS
        for low, high, by in _JOINS:
            raw = (raw & low) | ((raw & high) >> by)
        lengths = (np.bitwise_count(below).astype(np.int64) + 1) >> 3
        unended = np.flatnonzero(last == 0)
        if unended.size:
            at = self.at[unended] + _WORD_BYTES
            ninth, tenth = (self.shared.bytes[at + place].astype(np.uint64) for place in (0, 1))
            goes_on = ninth >= 0x80
            raw[unended] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
            raw[unended] |= np.where(goes_on, tenth << np.uint64(63), 0).astype(np.uint64)
            lengths[unended] = _WORD_BYTES + 1 + goes_on
            too_large = np.zeros(len(self), dtype=np.bool_)
            too_large[unended] = goes_on & (tenth > 1)
            self.skip(lengths)
            self.refuse(too_large)
        else:
            self.skip(lengths)
        return raw

    def spans(self) -> tuple[Int64s, Int64s]:
        """Where each one's bytes begin, and how many there are, after a length; nothing of a row that is refused."""
        lengths = self.longs()
        self.refuse((lengths < 0) | (lengths > self.end - self.at))
        lengths = np.where(self.ok, lengths, 0)
        return self.skip(lengths), lengths
