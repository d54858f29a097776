"""Avro's decimals: an integer in two's complement, most significant byte first, in as many bytes as it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.schemas.avro.columns.cursor import Bools, Cursor, Int64s, UInt64s
from sealane.schemas.avro.columns.walking import after_span

DIGITS_MAX = 38
"""Of a decimal that Arrow and Spark can hold in 16 bytes."""
WIDTH_BYTES = 16
"""Of a decimal of 38 digits; a longer one is refused, even if it begins with nothing but its sign."""
_WORD_BYTES, _WORD_BITS = 8, 64
_WORD = (1 << _WORD_BITS) - 1


@dataclass(frozen=True)
class Decimal:
    """A decimal over bytes, or over a fixed number of them; one with more digits than its precision is refused."""

    precision: int
    scale: int
    fixed_bytes: int | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    @property
    def bytes_min(self) -> int:
        return 1 if self.fixed_bytes is None else self.fixed_bytes

    def read(self, cursor: Cursor) -> pa.Array:
        if self.fixed_bytes is None:
            starts, lengths = cursor.spans()
        else:
            starts = cursor.skip(self.fixed_bytes)
            lengths = np.full(len(cursor), self.fixed_bytes, dtype=np.int64)
        sized = (lengths >= 1) & (lengths <= WIDTH_BYTES) & cursor.ok
        cursor.refuse(~sized)
        high, low = _words(cursor, np.where(sized, starts + lengths, WIDTH_BYTES), np.where(sized, lengths, 1))
        bound = 10**self.precision
        fits = _is_below(high, low, bound) & ~_is_below(high, low, 1 - bound)
        cursor.refuse(~fits)
        words = np.empty((len(cursor), 2), dtype=np.uint64)
        words[:, 0] = np.where(fits, low, 0)
        words[:, 1] = np.where(fits, high, 0).view(np.uint64)
        return pa.Array.from_buffers(self.arrow_type, len(cursor), [None, pa.py_buffer(words)])

    def walk(self, data: bytes, at: int) -> int:
        return after_span(data, at) if self.fixed_bytes is None else at + self.fixed_bytes


def _words(cursor: Cursor, stops: Int64s, lengths: Int64s) -> tuple[Int64s, UInt64s]:
    """Upper and lower half of the numbers whose bytes end there. There are always sixteen bytes before, of whatever."""
    low = cursor.shared.at(stops - _WORD_BYTES, ">u8").astype(np.uint64)
    high = cursor.shared.at(stops - WIDTH_BYTES, ">u8").astype(np.uint64)
    is_short = lengths <= _WORD_BYTES
    # What is not of the number is pushed out at the top, and the sign drawn in from there.
    foreign = ((WIDTH_BYTES - lengths) * 8) - np.where(is_short, _WORD_BITS, 0)
    top = np.where(is_short, low, high)
    # A shift by all bits is undefined: of a number without a byte, which there is not.
    signed = (top << foreign.astype(np.uint64)).view(np.int64) >> foreign
    upper = np.where(is_short, signed >> (_WORD_BITS - 1), signed)
    lower = np.where(is_short, signed.view(np.uint64), low)
    return upper, lower


def _is_below(high: Int64s, low: UInt64s, bound: int) -> Bools:
    bound_high, bound_low = bound >> _WORD_BITS, np.uint64(bound & _WORD)
    return (high < bound_high) | ((high == bound_high) & (low < bound_low))
