"""Large writes that go past the system's page cache (`O_DIRECT`): whole blocks, from aligned memory that is used again.

Who keeps up reads a new batch from the memory tail, so a copy in the page cache serves nobody, and its pages are dear:
on a virtual machine whose host has yet to give them, up to 3 ms of processor time a MiB, where a write past it takes
0.1.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence

BLOCK_BYTES = 4096
"""Where such a write begins and ends: what disks and file systems ask for, or a multiple of it."""
PAST_CACHE_BYTES_MIN = 64 << 10
"""Smaller writes are copied faster than a disk takes them, and the next one adds to the block that they end in."""
PIECE_BYTES_MAX = 6 << 20
"""How much is written by one call: a full group, so that the disk has all of it at once."""

_idle: list[mmap.mmap] = []
"""Memory that no file uses now. A file takes it when it needs it and gives it back when it is closed."""


class PastCache:
    """Writes to one open file, within its length. One call at a time."""

    def __init__(self, descriptor: int) -> None:
        """Raises `OSError` where the file system can only write through the page cache."""
        flag = getattr(os, "O_DIRECT", 0)
        if not flag:
            raise OSError(errno.EINVAL, "this system has no O_DIRECT")
        self._descriptor = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC | flag)
        self._buffered = descriptor
        self._memory = _idle.pop() if _idle else mmap.mmap(-1, PIECE_BYTES_MAX)
        self._end = 0
        self._ending = b""
        """Where the last write ended, and what it wrote to the block that it ended in."""

    def write(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        """The buffers one after another from `position`. What else is in the blocks at both ends stays as it is."""
        lead = position % BLOCK_BYTES
        memory = memoryview(self._memory)
        if lead:
            memory[:lead] = self._ending if self._end == position else os.pread(self._buffered, lead, position - lead)
        start, filled = position - lead, lead
        for buffer in buffers:
            rest = memoryview(buffer).cast("B")
            while len(rest) > PIECE_BYTES_MAX - filled:
                memory[filled:] = rest[: PIECE_BYTES_MAX - filled]
                rest = rest[PIECE_BYTES_MAX - filled :]
                self._write_out(memory, start)
                start, filled = start + PIECE_BYTES_MAX, 0
            # Not by numpy, which lets go of the interpreter meanwhile: getting it back takes longer than the copy.
            memory[filled : filled + len(rest)] = rest
            filled += len(rest)
        ending = filled % BLOCK_BYTES
        self._end, self._ending = start + filled, bytes(memory[filled - ending : filled])
        if ending:
            # Taken space that was never written reads as zeros, without the disk.
            after = os.pread(self._buffered, BLOCK_BYTES - ending, self._end)
            memory[filled : filled + len(after)] = after
            filled += len(after)
        self._write_out(memory[:filled], start)

    def close(self) -> None:
        os.close(self._descriptor)
        _idle.append(self._memory)

    def _write_out(self, data: memoryview, start: int) -> None:
        done = 0
        while done < len(data):
            # The kernel may take a part; what it takes is whole blocks.
            done += os.pwrite(self._descriptor, data[done:], start + done)


def past_end(position: int, length: int) -> int:
    """Where the last block ends of a write of this length."""
    return -(-(position + length) // BLOCK_BYTES) * BLOCK_BYTES
