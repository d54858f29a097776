"""What one file holds: what its process reads back (the page cache), and what would be left after a power loss.

Both are one byte array plus, for every 512-byte sector that differs, what the disk holds of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

SECTOR_BYTES = 512
"""What a disk writes whole or not at all, mostly: one sector of a lost write may also be cut in the middle."""

FLIP_ATTEMPTS_MAX = 64
"""How many random places are tried for a byte worth flipping before settling for a zero one."""


class Sectors:
    """The content of one file."""

    __slots__ = ("_dirty", "_lost", "_written_last", "cached", "durable_size", "synced_last")

    def __init__(self) -> None:
        self.cached = bytearray()
        self.durable_size = 0
        # Sectors written since the last sync, with what the disk holds of them.
        self._dirty: dict[int, bytes] = {}
        # Sectors whose sync failed: the system believes them clean, reads return the new bytes, the disk has the old.
        self._lost: dict[int, bytes] = {}
        self._written_last = 0
        self.synced_last = 0
        """Where the last write that was synced began: everything before it has something sound behind it."""

    def __len__(self) -> int:
        return len(self.cached)

    @property
    def clean(self) -> bool:
        """Whether a power loss would change nothing."""
        return not self._dirty and not self._lost and self.durable_size == len(self.cached)

    # --- what a process does ----------------------------------------------------------------------------------------

    def write(self, position: int, data: bytes | memoryview) -> None:
        if not len(data):
            return
        stop = position + len(data)
        if position > len(self.cached):
            self.cached.extend(bytes(position - len(self.cached)))
        self._touch(position, stop)
        self.cached[position:stop] = data
        self._written_last = position

    def truncate(self, length: int) -> None:
        if length < len(self.cached):
            self._touch(length, len(self.cached))
            del self.cached[length:]
        else:
            self.cached.extend(bytes(length - len(self.cached)))

    def sync(self) -> None:
        self._dirty.clear()
        self.durable_size = len(self.cached)
        self.synced_last = self._written_last

    def fail_sync(self, rng: random.Random) -> None:
        """Some sectors may have been written; the others never will be, as the system now believes them clean."""
        for sector, old in self._dirty.items():
            beyond = (sector + 1) * SECTOR_BYTES > self.durable_size
            if beyond or rng.random() < 0.5:
                self._lost[sector] = old
        self._dirty.clear()

    def _touch(self, start: int, stop: int) -> None:
        dirty = self._dirty
        for sector in range(start // SECTOR_BYTES, -(-stop // SECTOR_BYTES)):
            if sector in dirty:
                continue
            if sector in self._lost:
                # Writing to it again makes the system write the whole of it, with what was lost before.
                dirty[sector] = self._lost.pop(sector)
            else:
                begin = sector * SECTOR_BYTES
                dirty[sector] = bytes(self.cached[begin : min(begin + SECTOR_BYTES, self.durable_size)])

    # --- what happens to the disk -----------------------------------------------------------------------------------

    def lose_power(self, rng: random.Random) -> None:
        """Keep what was synced, and of the rest what the seed says: all, nothing, a beginning, or any sectors."""
        if self.clean:
            return
        written = self.cached
        kept = self._choose_kept(rng)
        size = self._choose_size(rng, kept)
        disk = self._on_disk()
        disk.extend(bytes(max(0, size - len(disk))))
        del disk[size:]
        for sector, bytes_kept in kept.items():
            begin = sector * SECTOR_BYTES
            stop = min(begin + bytes_kept, len(written), size)
            if stop > begin:
                disk[begin:stop] = written[begin:stop]
        self.cached = disk
        self.sync()

    def flip_bit(self, rng: random.Random, *, below: int) -> tuple[int, int] | None:
        """Flip one bit of what is synced, before position `below`: position and bit, or None if there is none."""
        below = min(below, self.durable_size, len(self.cached))
        chosen: int | None = None
        for _ in range(FLIP_ATTEMPTS_MAX if below > 0 else 0):
            position = rng.randrange(below)
            sector = position // SECTOR_BYTES
            if sector in self._dirty or sector in self._lost:
                continue
            chosen = position
            if self.cached[position]:
                # Files are zero-filled ahead, and a flip in the unused part would say little.
                break
        if chosen is None:
            return None
        bit = rng.randrange(8)
        self.cached[chosen] ^= 1 << bit
        return chosen, bit

    def _on_disk(self) -> bytearray:
        """The content as it was when last synced."""
        disk = bytearray(self.cached[: self.durable_size])
        disk.extend(bytes(self.durable_size - len(disk)))
        for changed in (self._lost, self._dirty):
            for sector, old in changed.items():
                begin = sector * SECTOR_BYTES
                if begin < self.durable_size:
                    stop = min(begin + SECTOR_BYTES, self.durable_size)
                    disk[begin:stop] = old.ljust(stop - begin, b"\0")[: stop - begin]
        return disk

    def _choose_kept(self, rng: random.Random) -> dict[int, int]:
        """Which dirty sectors reach the disk after all, with how many bytes of each."""
        dirty = sorted(self._dirty)
        draw = rng.random()
        if not dirty or draw < 0.25:
            return {}
        if draw < 0.45:
            return _whole(dirty)
        if draw < 0.7:
            count = rng.randrange(len(dirty))
            kept, torn = _whole(dirty[:count]), dirty[count]
        else:
            share = rng.random()
            kept = _whole(sector for sector in dirty if rng.random() < share)
            torn = rng.choice(dirty)
        kept[torn] = rng.randrange(SECTOR_BYTES + 1)
        return kept

    def _choose_size(self, rng: random.Random, kept: dict[int, int]) -> int:
        """How long the file is afterwards: as synced, as last seen, or just as long as what was kept needs."""
        needed = max((sector * SECTOR_BYTES + count for sector, count in kept.items()), default=0)
        needed = max(self.durable_size, min(needed, len(self.cached)))
        return rng.choice((self.durable_size, len(self.cached), needed))


def _whole(sectors: Iterable[int]) -> dict[int, int]:
    return dict.fromkeys(sectors, SECTOR_BYTES)
