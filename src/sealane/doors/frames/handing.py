"""From what a subscription delivers to frames that are written together, and to what is settled by that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyroaring import BitMap64

from sealane.doors.frames.framing import framed
from sealane.node.deliveries import Delivery, Part, offsets_of

PIECE_BYTES = 256 << 10
"""About what is written at once. Where a connection breaks in the middle of it, others get all of it again."""


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """Messages of one lease, as frames."""

    partition: int
    lease: int
    offsets: BitMap64
    data: bytes

    def __len__(self) -> int:
        return len(self.offsets)


def handed(delivery: Delivery) -> Iterator[Handed]:
    """All of a delivery, in its order, in pieces of about the same length."""
    offsets, payloads, room = BitMap64(), list[bytes](), PIECE_BYTES
    for part in delivery.parts:
        for piece in _pieces(part):
            if payloads and room <= 0:
                yield Handed(delivery.partition, delivery.lease, offsets, framed(payloads))
                offsets, payloads, room = BitMap64(), [], PIECE_BYTES
            offsets |= offsets_of(piece)
            payloads += piece.batch.payloads()
            room -= piece.batch.nbytes
    if payloads:
        yield Handed(delivery.partition, delivery.lease, offsets, framed(payloads))


def _pieces(part: Part) -> Iterator[Part]:
    batch = part.batch
    step = max(1, len(batch) * PIECE_BYTES // max(1, batch.nbytes))
    if step >= len(batch):
        yield part
        return
    for start in range(0, len(batch), step):
        stop = min(start + step, len(batch))
        yield Part(part.offsets[start:stop], batch.slice(start, stop))
