"""Which keys the bytes on disk refer to: every sealed body says so in its first bytes, so that nothing is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sealane.engine.local.files import File, Files
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.record import SEALED
from sealane.engine.local.segment import WAL_DIRECTORY, first_sequence_of, scan
from sealane.security.at_rest.sealing import HEAD_BYTES, KEY_ID_POSITION

KeyIds = frozenset[int]

_WINDOW_BYTES = 256 << 10
"""Heads that are so near to each other are read in one go."""


def key_ids_at(file: File, positions: np.ndarray) -> KeyIds:
    """The ids of the keys that sealed the bodies which begin at these positions."""
    found: set[int] = set()
    ordered = np.sort(positions.astype(np.int64))
    start = 0
    while start < len(ordered):
        stop = int(np.searchsorted(ordered, ordered[start] + _WINDOW_BYTES, side="right"))
        near = ordered[start:stop] - ordered[start]
        data = np.frombuffer(file.read_at(int(ordered[start]), int(near[-1]) + HEAD_BYTES), dtype=np.uint8)
        # What is cut short is damaged, and is found to be when it is read.
        near = near[near + HEAD_BYTES <= len(data)]
        ids = np.zeros(len(near), dtype=np.uint32)
        for place in range(4):
            ids |= data[near + KEY_ID_POSITION + place].astype(np.uint32) << np.uint32(8 * place)
        found.update(np.unique(ids).tolist())
        start = stop
    return frozenset(found)


def key_ids_of(files: Files, name: str, positions: np.ndarray) -> KeyIds:
    """The same for a file by its name."""
    if not len(positions):
        return frozenset()
    file = files.open(name)
    try:
        return key_ids_at(file, positions)
    finally:
        file.close()


def sealed_positions(file: CompactedFile) -> np.ndarray:
    return np.array([place.position for place in file.places if place.flags & SEALED], dtype=np.int64)


def key_ids_on_disk(files: Files, metadata: Metadata) -> Iterator[Callable[[], KeyIds]]:
    """The keys that everything stored refers to, found without any index in memory: a look for each file that is there.

    Segments are scanned record by record, compacted files are those that the metadata lists. Each look blocks.
    """
    for name in files.list(WAL_DIRECTORY):
        if first_sequence_of(name) is not None:
            yield lambda name=name: _in_segment(files, f"{WAL_DIRECTORY}/{name}")  # type: ignore[misc]
    for file in metadata.manifest():
        yield lambda file=file: key_ids_of(files, file.name, sealed_positions(file))  # type: ignore[misc]


def _in_segment(files: Files, name: str) -> KeyIds:
    if not files.exists(name):
        return frozenset()
    file = files.open(name)
    try:
        found = scan(file.read_at(0, file.size), name)
        bodies = [at for each in found.records for entry, at in each.bodies() if entry.flags & SEALED]
        return key_ids_at(file, np.array(bodies, dtype=np.int64))
    finally:
        file.close()
