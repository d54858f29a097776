"""A pull in pieces: some of its messages each, under a lease of its own, for those who cannot be sent all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import msgspec
import numpy as np

from sealane.message.tables import row_bytes
from sealane.node.deliveries import Delivery, Part
from sealane.node.pulling.pull import Pulled, leased, ticket_of
from sealane.node.pulling.ticket import Ticket


def pieces(pulled: Pulled, *, bytes_max: int, messages_max: int) -> list[Pulled]:
    """The same messages in the same order, so many at a time; one that is larger than that is a piece by itself. Each
    can be answered for before the next one is looked at.
    """
    if pulled.lease is None:
        return []
    gathered = list(_gathered(pulled, bytes_max, messages_max))
    if len(gathered) == 1:
        return [pulled]
    secret = Ticket.read(pulled.lease).secret
    return [
        replace(pulled, lease=ticket_of(secret, deliveries).text(), deliveries=tuple(deliveries))
        for deliveries in gathered
    ]


def give_back(pulled: Pulled) -> None:
    """Nobody has seen these: they are ready at once for others, and no attempt counts."""
    if pulled.attachment is not None:
        for delivery in pulled.deliveries:
            pulled.attachment.release(*leased(delivery))


def _gathered(pulled: Pulled, bytes_max: int, messages_max: int) -> Iterator[list[Delivery]]:
    """The deliveries of each piece; one that does not fit into a piece is in several."""
    piece: list[tuple[Delivery, Part]] = []
    has_bytes = has_messages = 0
    for delivery in pulled.deliveries:
        for part, nbytes in (each for whole in delivery.parts for each in _cut(whole, bytes_max, messages_max)):
            if piece and (has_bytes + nbytes > bytes_max or has_messages + len(part.batch) > messages_max):
                yield _deliveries(piece)
                piece, has_bytes, has_messages = [], 0, 0
            piece.append((delivery, part))
            has_bytes, has_messages = has_bytes + nbytes, has_messages + len(part.batch)
    if piece:
        yield _deliveries(piece)


def _cut(part: Part, bytes_max: int, messages_max: int) -> Iterator[tuple[Part, int]]:
    """Parts of it that each fit, with their bytes."""
    ends = np.cumsum(row_bytes(part.batch.records), dtype=np.int64)
    start = before = 0
    while start < len(ends):
        fitting = int(np.searchsorted(ends, before + bytes_max, side="right"))
        stop = max(start + 1, min(fitting, start + messages_max))
        end = int(ends[stop - 1])
        yield Part(part.offsets[start:stop], part.batch.cut(start, stop)), end - before
        start, before = stop, end


def _deliveries(piece: list[tuple[Delivery, Part]]) -> list[Delivery]:
    return [
        msgspec.structs.replace(delivery, parts=tuple(part for _, part in these))
        for delivery, these in groupby(piece, itemgetter(0))
    ]
