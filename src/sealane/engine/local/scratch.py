"""Memory for what is needed until a group is written, used again for the next one.

A group of megabytes in new memory each time costs a page fault for every 4 KiB, which took longer than sealing it.
"""

from __future__ import annotations

import mmap

SCRATCH_BYTES_MAX = 16 << 20
"""What is kept from one group to the next: a full group, joined and sealed. More is asked for only by batches that are
larger than a group, and is given back at once."""


class Scratch:
    """Hands out pieces of one block of memory until it is cleared; the block grows to what was asked for."""

    def __init__(self) -> None:
        self._block = memoryview(b"")
        self._taken = 0

    def take(self, length: int) -> memoryview:
        """So many bytes, of any content, until `clear`."""
        start = self._taken
        self._taken += length
        if self._taken <= len(self._block):
            return self._block[start : self._taken]
        return memoryview(bytearray(length))

    def clear(self) -> None:
        """Nobody uses what was taken any more."""
        if self._taken > len(self._block) and len(self._block) < SCRATCH_BYTES_MAX:
            # Pages of a mapping cost nothing before they are touched.
            self._block = memoryview(mmap.mmap(-1, min(SCRATCH_BYTES_MAX, 1 << (self._taken - 1).bit_length())))
        self._taken = 0
