"""A pull in pieces: some of its messages each, under a lease of its own, for those who cannot be sent all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sealane.message.tables import row_bytes
from sealane.node.deliveries import Delivery, Part
from sealane.node.pulling.pull import Pulled, leased_run
from sealane.node.pulling.ticket import Ticket


def pieces(pulled: Pulled, *, bytes_max: int, messages_max: int) -> list[Pulled]:
    """The same messages in the same order, so many at a time. A message that is larger is a piece of its own.

    Each can be answered for before the next one is looked at.
    """
    if pulled.lease is None:
        return []
    secret = Ticket.read(pulled.lease).secret
    found = list(_gathered(pulled, bytes_max, messages_max))
    if len(found) == 1:
        return [pulled]
    return [
        replace(pulled, lease=Ticket(secret, tuple(map(leased_run, deliveries))).text(), deliveries=tuple(deliveries))
        for deliveries in found
    ]


def give_back(pulled: Pulled) -> None:
    """Nobody has seen these: they are ready at once for others, and no attempt counts."""
    if pulled.attachment is not None:
        for delivery in pulled.deliveries:
            pulled.attachment.release(delivery.partition, delivery.lease, delivery.offsets())


def _gathered(pulled: Pulled, bytes_max: int, messages_max: int) -> Iterator[list[Delivery]]:
    """The deliveries of each piece; one that does not fit is in several."""
    piece: list[Delivery] = []
    bytes_left, messages_left = bytes_max, messages_max
    for delivery in pulled.deliveries:
        parts: list[Part] = []
        for part in delivery.parts:
            ends = np.cumsum(row_bytes(part.batch.records), dtype=np.int64)
            start = taken_bytes = 0
            while start < len(ends):
                fitting = int(np.searchsorted(ends, taken_bytes + bytes_left, side="right"))
                stop = min(fitting, start + messages_left)
                if stop <= start and not parts and not piece:
                    stop = start + 1
                if stop > start:
                    parts.append(Part(part.offsets[start:stop], part.batch.cut(start, stop)))
                    used = int(ends[stop - 1]) - taken_bytes
                    bytes_left, messages_left = bytes_left - used, messages_left - (stop - start)
                    start, taken_bytes = stop, taken_bytes + used
                if start < len(ends):
                    yield [*piece, replace(delivery, parts=tuple(parts))] if parts else piece
                    piece, parts = [], []
                    bytes_left, messages_left = bytes_max, messages_max
        if parts:
            piece.append(replace(delivery, parts=tuple(parts)))
    if piece:
        yield piece
