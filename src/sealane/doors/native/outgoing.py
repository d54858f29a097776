"""From what the node says to what goes over the wire: receipts and deliveries, without a copy that need not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sealane.delivery.offsets import span
from sealane.doors.native.merging import merged
from sealane.engine import Packed, Stored
from sealane.message import Batch, encode_parts
from sealane.node.deliveries import Delivery, Part, offsets_of
from sealane.node.receipts import Receipts
from sealane.wire.frames import ALIGNMENT
from sealane.wire.messages import Deliver, PlacedShare
from sealane.wire.runs import to_runs

Body = list[memoryview]
WirePart = tuple[int, int, int, bytes | None]
"""As in `Deliver.parts`: first offset, messages, bytes, scattered offsets."""


def placed_shares(receipts: Receipts) -> list[PlacedShare]:
    """Where the messages of a batch are. One small object a partition where they lie together."""
    return [_placed(share.partition, share.rows, share.offsets) for share in receipts.shares]


def _placed(partition: int, rows: np.ndarray | None, offsets: range | list[int]) -> PlacedShare:
    chosen = None if rows is None else np.asarray(rows, dtype="<u4").tobytes()
    first, count = offsets[0], len(offsets)
    if isinstance(offsets, range):
        return PlacedShare(partition, first, count, None, chosen)
    listed = np.asarray(offsets, dtype="<i8")
    if np.array_equal(listed, np.arange(first, first + count)):
        return PlacedShare(partition, first, count, None, chosen)
    return PlacedShare(partition, first, count, listed.tobytes(), chosen)


def deliver_frames(consumer: int, delivery: Delivery, body_bytes_max: int) -> Iterator[tuple[Deliver, Body]]:
    """The delivery as one message, or as several of the same lease where one would be too long."""
    if len(delivery.parts) == 1 and not delivery.attempts:
        part = delivery.parts[0]
        body, count = encoded(part.batch)
        if count <= body_bytes_max:
            yield _deliver(consumer, delivery, [_wire_part(part, count)], []), body
            return
    whole = merged(delivery.parts)
    for parts, wire_parts, body in _grouped(whole, body_bytes_max):
        attempts = delivery.attempts
        if attempts and len(parts) < len(whole):
            here = span(0, 0)
            for part in parts:
                here |= offsets_of(part)
            attempts = tuple((shared, attempt) for offsets, attempt in attempts if (shared := offsets & here))
        yield _deliver(consumer, delivery, wire_parts, [(to_runs(runs), attempt) for runs, attempt in attempts]), body


def _deliver(
    consumer: int, delivery: Delivery, parts: list[WirePart], attempts: list[tuple[list[int], int]]
) -> Deliver:
    return Deliver(consumer, delivery.topic, delivery.partition, delivery.lease, delivery.deadline_us, parts, attempts)


def browsed_parts(stored: Sequence[Stored | Packed], body_bytes_max: int) -> tuple[list[WirePart], Body]:
    """As many of the stored batches as fit into one answer; at least one, cut down if it must be."""
    wire_parts: list[WirePart] = []
    body: Body = []
    room = body_bytes_max
    for each in stored:
        for wire_part, pieces, count in _browsed(each, body_bytes_max):
            if wire_parts and count > room:
                return wire_parts, body
            wire_parts.append(wire_part)
            body.extend(pieces)
            room -= count
    return wire_parts, body


def _browsed(stored: Stored | Packed, body_bytes_max: int) -> Iterator[tuple[WirePart, Body, int]]:
    if isinstance(stored, Packed):
        # Whoever unpacks it relies on it that a frame could hold what comes of it.
        if max(stored.nbytes, len(stored.data)) <= body_bytes_max:
            yield (stored.base, stored.messages, len(stored.data), None), [stored.data], len(stored.data)
            return
        stored = stored.opened()
    whole = Part(range(stored.base, stored.stop), stored.batch)
    for part, pieces, count in _encoded([whole], body_bytes_max):
        yield _wire_part(part, count), pieces, count


def _grouped(parts: Sequence[Part], body_bytes_max: int) -> Iterator[tuple[list[Part], list[WirePart], Body]]:
    group: list[Part] = []
    wire_parts: list[WirePart] = []
    body: Body = []
    group_bytes = 0
    for part, pieces, count in _encoded(parts, body_bytes_max):
        if group and group_bytes + count > body_bytes_max:
            yield group, wire_parts, body
            group, wire_parts, body, group_bytes = [], [], [], 0
        group.append(part)
        wire_parts.append(_wire_part(part, count))
        body.extend(pieces)
        group_bytes += count
    if group:
        yield group, wire_parts, body


def _encoded(parts: Sequence[Part], body_bytes_max: int) -> Iterator[tuple[Part, Body, int]]:
    """Each part with its encoding; one that is too long by itself is cut in two."""
    for part in parts:
        pieces, count = encoded(part.batch)
        if count <= body_bytes_max or len(part.batch) == 1:
            yield part, pieces, count
        else:
            middle = len(part.batch) // 2
            halves = [
                Part(part.offsets[:middle], part.batch.slice(0, middle)),
                Part(part.offsets[middle:], part.batch.slice(middle, len(part.batch))),
            ]
            yield from _encoded(halves, body_bytes_max)


def encoded(batch: Batch) -> tuple[Body, int]:
    """A batch as pieces of a body, and their bytes in all."""
    head, records = encode_parts(batch)
    pieces = [memoryview(head), memoryview(records).cast("B")]
    count = len(head) + records.size
    assert count % ALIGNMENT == 0, "what follows in the body must be aligned too"
    return pieces, count


def _wire_part(part: Part, count: int) -> WirePart:
    first = int(part.offsets[0])
    if isinstance(part.offsets, range):
        return first, len(part.batch), count, None
    return first, len(part.batch), count, part.offsets.astype("<i8").tobytes()
