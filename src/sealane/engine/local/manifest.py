"""Compacted files as metadata knows them: which file holds which offsets of which log, and where in it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sealane.engine.contract import PartitionKey

_PLACE = struct.Struct("<QIQQqQB")


class Place(NamedTuple):
    """Where the body of one stored entry is in its file, and what is needed to find and check it.

    What lies between two places, or between the last one and the file's `stop`, was damaged and is gone.
    """

    base: int
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody calls
    position: int
    length: int
    time_us: int
    """When the last message of it was committed."""
    checksum: int
    """xxh3_64 of the `length` bytes at `position`."""
    flags: int
    """As in `record` and `compacted`: how to read those bytes."""

    @property
    def stop(self) -> int:
        return self.base + self.count


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """One compacted file: a run of one partition's messages or journal, offsets ascending."""

    name: str
    """Relative to the data directory."""
    partition: PartitionKey
    kind: int
    """`record.MESSAGES` or `record.JOURNAL`."""
    generation: int
    sealed: bool
    file_bytes: int
    base: int
    stop: int
    """The file stands for the offsets [base, stop), those included that damage has cost."""
    places: tuple[Place, ...] = field(repr=False)

    @property
    def arrow(self) -> bool:
        """Whether this is a plain Arrow IPC file."""
        return self.name.endswith(".arrow")


def pack_places(places: Iterable[Place]) -> bytes:
    return b"".join(_PLACE.pack(*place) for place in places)


def unpack_places(data: bytes) -> tuple[Place, ...]:
    return tuple(Place(*fields) for fields in _PLACE.iter_unpack(data))
