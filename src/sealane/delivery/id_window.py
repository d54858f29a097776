"""The id window: ids that callers gave, remembered for a while, so that a repeated message is stored once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

ID_BYTES = 16


@dataclass(slots=True)
class _Generation:
    """Ids that came within the same slice of time; they are forgotten together."""

    until_us: int
    offsets: dict[bytes, int] = field(default_factory=dict)


class IdWindow:
    """Remembers an id for at least `window_us`, and at most `ids_max` of them, or one batch where that is more.

    Ids live in a few generations, so that forgetting is dropping a dictionary, not a walk over ids. Past `ids_max` the
    oldest generation goes early.
    """

    GENERATIONS = 10

    __slots__ = ("_generations", "_size", "ids_max", "window_us")

    def __init__(self, window_us: int, ids_max: int) -> None:
        self.window_us = window_us
        self.ids_max = ids_max
        self._generations: deque[_Generation] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def find(self, identity: bytes) -> int | None:
        """The offset under which this id is stored, if it is remembered."""
        for generation in self._generations:
            offset = generation.offsets.get(identity)
            if offset is not None:
                return offset
        return None

    def add(self, identities: list[bytes], base: int, now_us: int) -> None:
        """Remember ids that took the offsets from `base` on."""
        if not identities:
            return
        self._forget(now_us, room_for=len(identities))
        newest = self._generations[-1] if self._generations else None
        slice_us = self.window_us // self.GENERATIONS
        if newest is None or newest.until_us <= now_us or len(newest.offsets) > self.ids_max // self.GENERATIONS:
            newest = _Generation(now_us + slice_us)
            self._generations.append(newest)
        known = len(newest.offsets)
        newest.offsets.update(zip(identities, range(base, base + len(identities)), strict=True))
        self._size += len(newest.offsets) - known

    def _forget(self, now_us: int, room_for: int) -> None:
        while self._generations:
            oldest = self._generations[0]
            outdated = oldest.until_us + self.window_us <= now_us
            if not outdated and self._size + room_for <= self.ids_max:
                return
            self._size -= len(oldest.offsets)
            self._generations.popleft()

    def dump(self) -> list[tuple[int, bytes, list[int]]]:
        return [
            (generation.until_us, b"".join(generation.offsets), list(generation.offsets.values()))
            for generation in self._generations
        ]

    def load(self, dumped: list[tuple[int, bytes, list[int]]]) -> None:
        self._generations = deque(
            _Generation(until_us, dict(zip(split_ids(identities), offsets, strict=True)))
            for until_us, identities, offsets in dumped
        )
        self._size = sum(len(generation.offsets) for generation in self._generations)


def split_ids(identities: bytes) -> list[bytes]:
    return [identities[at : at + ID_BYTES] for at in range(0, len(identities), ID_BYTES)]
