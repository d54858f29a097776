"""From one value to the next in the bytes of a single payload, where there are too few rows to read them at once.

Each function says where what begins at a place ends, which may be behind the end of the bytes, and raises `IndexError`
if even that cannot be told. Whether it is sound is found out when it is read.
"""

from __future__ import annotations

_NUMBER_BITS = 64


def number(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    found = shift = 0
    while (byte := data[at]) >= 0x80:
        found |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if shift >= _NUMBER_BITS:
            raise IndexError("a number has more than ten bytes")
    found |= byte << shift
    return (found >> 1) ^ -(found & 1), at + 1


def after_number(data: bytes, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def after_span(data: bytes, at: int) -> int:
    """After bytes that follow their number."""
    length, at = number(data, at)
    if length < 0:
        raise IndexError("a length is negative")
    return at + length


def block(data: bytes, at: int, bytes_min: int) -> tuple[int, int]:
    """How many items follow, none at the end of all; and where the first begins. An item takes `bytes_min` at least."""
    count, at = number(data, at)
    if count < 0:
        at = after_number(data, at)
        count = -count
    if count > (len(data) - at) // bytes_min:
        raise IndexError("a block has more items than bytes")
    return count, at
