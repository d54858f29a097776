"""Columns of Python's values, their buffers put into place by hand.

Arrow's own conversion, `pa.array`, loads pandas before its first array, where that is installed, as beside Spark it
always is: half a second in which a program that has just begun to publish does nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sealane.message.schema import HEADERS_TYPE

_BINARY = pa.binary()
_UTF8 = pa.utf8()
_ENTRIES = [HEADERS_TYPE.key_field, HEADERS_TYPE.item_field]
OFFSET_MAX = 2**31 - 1
"""What an offset of 32 bits reaches."""


def numbers(values: Sequence[int | None], dtype: str, kind: pa.DataType) -> pa.Array:
    """A column of numbers, of a numpy type that is laid out as Arrow's."""
    missing, nulls = _validity(values)
    data = np.array([0 if value is None else value for value in values] if nulls else values, dtype=dtype)
    return pa.Array.from_buffers(kind, len(values), [missing, pa.py_buffer(data)], nulls)


def binaries(values: Sequence[bytes | None]) -> pa.Array:
    """A column of bytes. Raises `OverflowError` if all together are more than an offset reaches."""
    missing, nulls = _validity(values)
    return _joined([value or b"" for value in values], _BINARY, missing, nulls)


def headers(mappings: Sequence[Sequence[tuple[str, str]] | None]) -> pa.Array:
    """A column of headers, each a sequence of names and values."""
    missing, nulls = _validity(mappings)
    pairs = [pair for mapping in mappings if mapping is not None for pair in mapping]
    texts = [_joined([pair[side].encode() for pair in pairs], _UTF8) for side in (0, 1)]
    entries = pa.StructArray.from_arrays(texts, fields=_ENTRIES)
    offsets = pa.py_buffer(offsets_of_lengths([0 if mapping is None else len(mapping) for mapping in mappings]))
    return pa.Array.from_buffers(HEADERS_TYPE, len(mappings), [missing, offsets], nulls, children=[entries])


def _validity(values: Sequence[object]) -> tuple[pa.Buffer | None, int]:
    """The bitmap of what is not null, if anything is, and how many are."""
    nulls = sum(value is None for value in values)
    if not nulls:
        return None, 0
    bits = np.packbits([value is not None for value in values], bitorder="little")
    return pa.py_buffer(bits), nulls


def _joined(values: Sequence[bytes], kind: pa.DataType, missing: pa.Buffer | None = None, nulls: int = 0) -> pa.Array:
    offsets = offsets_of_lengths(list(map(len, values)))
    buffers = [missing, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers, nulls)


def offsets_of_lengths(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where values of these lengths end, after a zero. Raises `OverflowError` beyond what an offset reaches."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    if ends[-1] > OFFSET_MAX:
        raise OverflowError(f"{int(ends[-1]):,} bytes are more than an offset reaches")
    return ends.astype("<i4")
