"""Message ids: UUIDv7, generated a batch at a time.

A batch's generated ids share everything but their last bits, which count up: 1,000 of them compress to a few bytes
each, and they sort in the order of generation. Time and randomness come in with the `Stamp`: nothing reads a clock.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidArgument, InvalidMessage
from sealane.message.schema import ID_TYPE, TIME_US_MAX

ID_BYTES = 16
RANDOM_BYTES = 16

_VERSION = 7 << 12
_VARIANT = 0b10 << 62
_START_MASK = (1 << 61) - 1


class Stamp(NamedTuple):
    """What the shell supplies when a batch is built: the time, and 16 random bytes that are used once."""

    created_us: int
    random: bytes


def generate_ids(count: int, stamp: Stamp) -> pa.FixedSizeBinaryArray:
    """`count` UUIDv7s that count up from a random start.

    The microseconds within the millisecond fill the 12 bits after the version (RFC 9562, method 3), so ids of batches
    stamped at different microseconds sort by time. The start has 61 random bits below a clear one: counting up never
    carries into the variant, and two batches of one microsecond collide with a probability of about count / 2^60.
    """
    return pa.Array.from_buffers(ID_TYPE, count, [None, pa.py_buffer(id_bytes(count, stamp))], 0)


def id_bytes(count: int, stamp: Stamp) -> bytes:
    """Those that `generate_ids` gives, one behind the other."""
    return run_bytes(count, *first_id(stamp))


def first_id(stamp: Stamp) -> tuple[int, int]:
    """The two halves of the first id that a stamp gives: those after it count up the second one."""
    created_us, random = stamp
    if not 0 <= created_us <= TIME_US_MAX:
        raise InvalidArgument("stamp", f"created_us is {created_us}, outside of 1970 to 9999")
    if len(random) != RANDOM_BYTES:
        raise InvalidArgument("stamp", f"random has {len(random)} bytes, {RANDOM_BYTES} are needed")
    time_ms, below_us = divmod(created_us, 1000)
    high = time_ms << 16 | _VERSION | (below_us << 12) // 1000
    return high, _VARIANT | int.from_bytes(random[:8], "big") & _START_MASK


def run_bytes(count: int, high: int, start: int) -> bytes:
    """So many ids from this one on, one behind the other."""
    if count == 1:
        return (high << 64 | start).to_bytes(ID_BYTES, "big")
    data = np.empty((count, 2), dtype=">u8")
    data[:, 0] = high
    data[:, 1] = np.arange(start, start + count, dtype=np.uint64)
    return data.tobytes()


def parse_id(value: uuid.UUID | str | bytes) -> bytes:
    """The 16 bytes of an id given as a UUID, its text, or bytes; `InvalidMessage` for anything else."""
    if isinstance(value, bytes):
        if len(value) != ID_BYTES:
            raise InvalidMessage("id", f"has {len(value)} bytes, an id has {ID_BYTES}")
        return value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return uuid.UUID(value).bytes
        except ValueError:
            raise InvalidMessage("id", f"is {value[:64]!r}, which is not a UUID") from None
    raise InvalidMessage("id", f"is a {type(value).__name__}; give a uuid.UUID, its text, or 16 bytes")
