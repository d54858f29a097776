"""Ids as Spark has them, variable-length bytes or text, as messages have them: 16 bytes. A column at a time."""

from __future__ import annotations

import binascii

import pyarrow as pa

from sealane.errors import InvalidMessage
from sealane.message.arrow_compute import pc
from sealane.message.batch import offsets_of
from sealane.message.ids import ID_BYTES
from sealane.message.schema import ID_TYPE

_HEX_CHARS = 2 * ID_BYTES


def ids_of(column: pa.Array) -> pa.Array:
    """The column as 16 bytes each. Raises `InvalidMessage` for a null, another length, or text that is no UUID."""
    if column.null_count:
        problem = f"is null in {column.null_count:,} of {len(column):,} rows; give every row one, or drop the column"
        raise InvalidMessage("id", problem)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parsed(column)
    _check_lengths(column, ID_BYTES, "bytes")
    return column.cast(ID_TYPE)


def _parsed(column: pa.Array) -> pa.Array:
    """UUIDs as text, with or without their dashes, all at once: their digits are read as one long number."""
    digits = pc.replace_substring(column, "-", "").cast(pa.binary())
    _check_lengths(digits, _HEX_CHARS, "hexadecimal digits")
    ends = offsets_of(digits)
    try:
        data = binascii.unhexlify(memoryview(digits.buffers()[2])[ends[0] : ends[-1]])
    except binascii.Error:
        wrong = pc.index(pc.match_substring_regex(column, "^[0-9a-fA-F-]*$"), pa.scalar(False)).as_py()
        raise InvalidMessage("id", f"is {column[wrong].as_py()[:64]!r} in a row, which is not a UUID") from None
    return pa.Array.from_buffers(ID_TYPE, len(column), [None, pa.py_buffer(data)], 0).cast(pa.binary())


def _check_lengths(column: pa.Array, wanted: int, unit: str) -> None:
    if not len(column):
        return
    extremes = pc.min_max(pc.binary_length(column))
    for found in (extremes["min"].as_py(), extremes["max"].as_py()):
        if found != wanted:
            raise InvalidMessage("id", f"has {found} {unit} in a row; an id is {wanted} {unit}, or a UUID as text")
