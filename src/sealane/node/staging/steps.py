"""What one commit of a publish takes: decided from what is staged and how far it has come, without touching a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sealane.delivery.staging import StagedBatch


class Piece(NamedTuple):
    """The rows [start, stop) of a staged batch."""

    batch: StagedBatch
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def bytes_of(batches: Sequence[StagedBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def messages_of(batches: Sequence[StagedBatch]) -> int:
    return sum(batch.count for batch in batches)


def next_step(
    batches: Sequence[StagedBatch], published: int, *, bytes_max: int, messages_max: int | None = None
) -> list[Piece]:
    """What follows the first `published` messages, up to these limits; at least something if anything is left."""
    pieces: list[Piece] = []
    room_bytes, room = bytes_max, messages_max
    for batch in batches:
        start = min(published, batch.count)
        published -= start
        if start == batch.count:
            continue
        stop = batch.count if room is None else min(batch.count, start + room)
        nbytes = batch.nbytes * (stop - start) // batch.count
        if pieces and nbytes > room_bytes:
            break
        pieces.append(Piece(batch, start, stop))
        room_bytes -= nbytes
        if room is not None:
            room -= stop - start
            if room == 0:
                break
    return pieces
