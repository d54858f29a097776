"""Sets of offsets as Roaring bitmaps: a run of a million costs what a run of one does."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

Packed = tuple[int, int] | bytes
"""How a set is journalled: one run as (start, stop), anything else as a serialised bitmap."""

UintArray = npt.NDArray[np.uint64]


def span(start: int, stop: int) -> BitMap64:
    """The run [start, stop)."""
    offsets = BitMap64()
    if stop > start:
        offsets.add_range(start, stop)
    return offsets


def pack(offsets: BitMap64) -> Packed:
    if not offsets:
        return (0, 0)
    low, high = offsets.min(), offsets.max()
    if high - low + 1 == len(offsets):
        return (low, high + 1)
    offsets.run_optimize()
    return bytes(offsets.serialize())


def unpack(packed: Packed) -> BitMap64:
    if isinstance(packed, bytes):
        return BitMap64.deserialize(packed)
    return span(*packed)


def packed_count(packed: Packed) -> int:
    """How many offsets it holds."""
    if isinstance(packed, bytes):
        return len(BitMap64.deserialize(packed))
    return packed[1] - packed[0]


def take_first(offsets: BitMap64, count: int) -> BitMap64:
    """Remove the lowest `count` offsets and return them."""
    if len(offsets) <= count:
        taken = offsets.copy()
        offsets.clear()
        return taken
    low, stop = offsets.min(), offsets[count]
    taken = span(low, stop)
    if stop - low != count:
        taken &= offsets
    offsets.remove_range(low, stop)
    return taken


def runs(offsets: BitMap64) -> list[tuple[int, int]]:
    """The set as half-open runs, in order."""
    if not offsets:
        return []
    low, high = offsets.min(), offsets.max()
    if high - low + 1 == len(offsets):
        return [(low, high + 1)]
    values = to_array(offsets)
    breaks = np.flatnonzero(np.diff(values) != 1)
    starts = values[np.concatenate(([0], breaks + 1))]
    stops = values[np.concatenate((breaks, [len(values) - 1]))] + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def to_array(offsets: BitMap64) -> UintArray:
    return np.frombuffer(offsets.to_array(), dtype=np.uint64)


def from_array(values: UintArray) -> BitMap64:
    """A set from ascending offsets, without a Python object for each of them where they form runs."""
    if len(values) == 0:
        return BitMap64()
    if int(values[-1]) - int(values[0]) + 1 == len(values):
        return span(int(values[0]), int(values[-1]) + 1)
    return BitMap64(array("Q", values.tobytes()))
