"""Compacted files as metadata knows them: which file holds which offsets of which log, and where in it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sealane.engine.contract import PartitionKey

KIND_MESSAGES = "messages"
KIND_JOURNAL = "journal"

_PLACE = struct.Struct("<QIQIqQ")


class Place(NamedTuple):
    """Where one stored entry is in its file, and what is needed to find and check it."""

    base: int
    count: int
    position: int
    length: int
    time_us: int
    """When the last message of it was committed."""
    checksum: int
    """xxh3_64 of the `length` bytes at `position`."""

    @property
    def stop(self) -> int:
        return self.base + self.count


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """One compacted file: a run of one partition's messages or journal, offsets ascending."""

    name: str
    """Relative to the data directory."""
    partition: PartitionKey
    kind: str
    generation: int
    sealed: bool
    file_bytes: int
    places: tuple[Place, ...] = field(repr=False)

    @property
    def base(self) -> int:
        return self.places[0].base

    @property
    def stop(self) -> int:
        return self.places[-1].stop

    @property
    def arrow(self) -> bool:
        """Whether this is a plain Arrow IPC file."""
        return self.name.endswith(".arrow")


def pack_places(places: Iterable[Place]) -> bytes:
    return b"".join(_PLACE.pack(*place) for place in places)


def unpack_places(data: bytes) -> tuple[Place, ...]:
    return tuple(Place(*fields) for fields in _PLACE.iter_unpack(data))
