"""Memory for large batches and long frames, used again once nobody looks at it any more.

A page that is new to a process is cleared first, and on a virtual machine perhaps fetched from its host: for a frame of
a mebibyte that takes up to ten times as long as filling it. The system's allocator gives large pieces back when they
are freed; these are kept.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

IDLE_BYTES_MAX = 32 << 20
"""What is kept for the next ones: what a busy connection has on its way. More goes back to the system."""
_STEPS = 8
"""Lengths between a power of two and the next one: at most an eighth of a block is not used."""
_STEP_BYTES_MIN = 4096
_SYSTEM = pa.system_memory_pool()
"""Arrow's own pool asks for huge pages and gives them back within a tenth of a second."""


class _Lent(weakref.ref[Any]):
    """Who looks at a block; gone when nobody does."""

    __slots__ = ("block",)
    block: pa.Buffer


class Blocks:
    """Lends memory, and has it back by itself, from whichever thread lets go of it last.

    Event loops in several threads may share it without a lock: each step on what they share is one call that Python
    does not interrupt, and the worst that two of them can do to each other is to keep a block more or less.
    """

    def __init__(self, idle_bytes_max: int = IDLE_BYTES_MAX) -> None:
        self._idle_bytes_max = idle_bytes_max
        self._idle: dict[int, deque[pa.Buffer]] = {}
        """By length."""
        self._lent: dict[int, _Lent] = {}
        self._returned: deque[pa.Buffer] = deque()
        """What has come back since somebody asked. Letting go may happen in the middle of anything, so it does no more
        than to put a block here."""

    def take(self, length: int) -> memoryview:
        """So many bytes, of any content, for as long as anything refers to them."""
        size = _rounded(length)
        self._put_away()
        block = _popped(self._idle.get(size))
        if block is None:
            block = pa.allocate_buffer(size, memory_pool=_SYSTEM)
        window = np.frombuffer(block, dtype=np.uint8)
        lent = _Lent(window, self._came_back)
        lent.block = block
        self._lent[id(lent)] = lent
        return memoryview(window)[:length]  # type: ignore[arg-type]  # an array of numpy is a buffer

    @property
    def idle_bytes(self) -> int:
        """What is kept, and nobody uses now."""
        self._put_away()
        return self._kept_bytes()

    def _kept_bytes(self) -> int:
        return sum(size * len(alike) for size, alike in list(self._idle.items()))

    def _came_back(self, lent: _Lent) -> None:
        del self._lent[id(lent)]
        self._returned.append(lent.block)

    def _put_away(self) -> None:
        newest = 0
        while (block := _popped(self._returned)) is not None:
            newest = block.size
            self._idle.setdefault(newest, deque()).append(block)
        if not newest:
            return
        excess = self._kept_bytes() - self._idle_bytes_max
        # What is of the length that is in use now goes last.
        for size in sorted(self._idle, key=newest.__eq__):
            while excess > 0 and _popped(self._idle[size]) is not None:
                excess -= size


BLOCKS = Blocks()
"""Of this process: what one batch or frame has left fits the next one."""


def _popped(blocks: deque[pa.Buffer] | None) -> pa.Buffer | None:
    try:
        return blocks.pop() if blocks is not None else None
    except IndexError:
        return None


def _rounded(length: int) -> int:
    step = max(_STEP_BYTES_MIN, (1 << (length - 1).bit_length()) // (2 * _STEPS))
    return -(-length // step) * step
