"""Payloads one behind the other, as an Arrow column holds them, and what goes around them in a plain batch.

Each one is looked at, which is most of what a batch of thousands of messages costs its producer. So it is compiled
(`_plain.c`) where a C compiler was at hand when Sealane was built, and takes a ninth of the time then. The functions
in Python do the same to the last bit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from operator import countOf

import numpy as np

from sealane.message.arrays import OFFSET_MAX, offsets_of_lengths
from sealane.message.ids import run_bytes

try:
    from sealane.message import _plain

    compiled = _plain
except ImportError:  # Nobody could compile it here, which costs time and nothing else.
    compiled = None  # type: ignore[assignment]

FEW = 128
"""Up to so many payloads a list of their ends is made sooner than an array."""


def ends_in_python(payloads: list[bytes] | tuple[bytes, ...], bytes_max: int) -> tuple[bytes, int] | None:
    """Where each payload ends, after a zero, as little-endian numbers of 32 bits; and how many bytes all are together.

    None if one of them is not `bytes`, nothing like it either, or is longer than `bytes_max`, or if all together are
    more than an offset reaches.
    """
    count = len(payloads)
    if countOf(map(type, payloads), bytes) != count:
        return None
    return _ends_of_few(payloads, bytes_max) if count <= FEW else _ends_of_many(payloads, bytes_max)


def _ends_of_few(payloads: Sequence[bytes], bytes_max: int) -> tuple[bytes, int] | None:
    offsets = list(accumulate(map(len, payloads), initial=0))
    total = offsets[-1]
    if total > bytes_max and max(map(len, payloads)) > bytes_max:
        return None
    return (struct.pack(f"<{len(offsets)}i", *offsets), total) if total <= OFFSET_MAX else None


def _ends_of_many(payloads: Sequence[bytes], bytes_max: int) -> tuple[bytes, int] | None:
    """The same, in half of the time where they are many."""
    lengths = np.fromiter(map(len, payloads), dtype=np.int64, count=len(payloads))
    try:
        offsets = offsets_of_lengths(lengths)
    except OverflowError:
        return None
    total = int(offsets[-1])
    if total > bytes_max and int(lengths.max()) > bytes_max:
        return None
    return offsets.tobytes(), total


def lay_out_in_python(
    columns: memoryview,
    id_high: int,
    id_start: int,
    ends: bytes,
    payloads: list[bytes] | tuple[bytes, ...],
    payload_bytes: int,
    created_us: int,
) -> None:
    """Write the columns of a plain batch one after another, each padded to 8 bytes: ids that count up, where payloads
    end, the payloads, which are `payload_bytes` together as `ends` has found, and one time for all.

    Raises `ValueError` where that does not fill `columns`, byte for byte.
    """
    count = len(payloads)
    ids, times = run_bytes(count, id_high, id_start), created_us.to_bytes(8, "little") * count
    made = b"".join((ids, ends, bytes(-len(ends) % 8), *payloads, bytes(-payload_bytes % 8), times))
    said = len(ids) + (len(ends) + 7 & ~7) + (payload_bytes + 7 & ~7) + len(times)
    if len(ends) != 4 * (count + 1) or not len(made) == said == len(columns):
        raise ValueError("the payloads are not as many bytes as was said")
    columns[:] = made


def together(payloads: Sequence[bytes]) -> int:
    """How many bytes they are together. Raises `TypeError` if one of them has no length."""
    if compiled is not None and isinstance(payloads, list | tuple):
        found = compiled.ends(payloads, OFFSET_MAX)
        if found is not None:
            return found[1]
    return sum(map(len, payloads))


ends = ends_in_python if compiled is None else compiled.ends
lay_out = lay_out_in_python if compiled is None else compiled.lay_out
