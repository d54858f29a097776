"""From the wire to what lanes know: deliveries, receipts and stored batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sealane.engine import Stored
from sealane.message import Batch, Limits, decode
from sealane.message.codec import FRAMING_BYTES_MAX
from sealane.node.deliveries import Delivery, Part
from sealane.node.receipts import Receipts, Share
from sealane.wire.errors import ProtocolError
from sealane.wire.messages import Deliver, PlacedShare
from sealane.wire.runs import from_runs

GENERATION_SHIFT = 52
"""A lease's number as the client knows it is the node's below these bits, and above them which link it came by: after
a reconnection the node may give the same numbers again."""
LEASE_MASK = (1 << GENERATION_SHIFT) - 1

_ANY = 1 << 31
_WHATEVER_IS_STORED = Limits(_ANY, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY)
"""Bytes from a node are checked like any that came over a network, but what was stored once is within its limits."""

WirePart = tuple[int, int, int, bytes | None]


def delivery_of(message: Deliver, body: memoryview, subscription: str, generation: int) -> Delivery:
    """Raises `ProtocolError`, `InvalidBatch` or `InvalidMessage` for what no node should say."""
    if not 0 <= message.lease <= LEASE_MASK:
        raise ProtocolError("bad-message", f"lease {message.lease} is not in 0 to {LEASE_MASK}")
    parts: list[Part] = []
    at = 0
    for announced in message.parts:
        parts.append(_part_at(at, announced, body))
        at += announced[2]
    return Delivery(
        message.topic,
        message.partition,
        subscription,
        generation << GENERATION_SHIFT | message.lease,
        message.deadline_us,
        tuple(parts),
        tuple((from_runs(runs), attempt) for runs, attempt in message.attempts) if message.attempts else (),
    )


def stored_of(parts: Sequence[WirePart], body: memoryview, limits: Limits, bytes_max: int) -> list[Stored]:
    """The answer to a request for about `bytes_max`, of a node with these limits: what comes compressed unpacks to no
    more than one batch beyond that.
    """
    batch_bytes_max = limits.batch_bytes_max + FRAMING_BYTES_MAX
    found: list[Stored] = []
    at = unpacked = 0
    for announced in parts:
        part = _part_at(at, announced, body, batch_bytes_max)
        at += announced[2]
        unpacked += part.batch.nbytes
        if unpacked > max(bytes_max, len(body)) + batch_bytes_max:
            raise ProtocolError("bad-message", f"more than {unpacked:,} bytes are no answer to {bytes_max:,} asked for")
        found.append(Stored(int(part.offsets[0]), part.batch))
    return found


def _part_at(at: int, announced: WirePart, body: memoryview, unpacked_bytes_max: int | None = None) -> Part:
    first, count, size, scattered = announced
    if size < 0 or at + size > len(body):
        raise ProtocolError("bad-message", f"a batch of {size:,} bytes is not in a body of {len(body):,}")
    batch = decode(body[at : at + size], limits=_WHATEVER_IS_STORED, unpacked_bytes_max=unpacked_bytes_max)
    # Compared first: of a number that no length can be, a range has none.
    if count != len(batch):
        raise ProtocolError("bad-message", f"a batch of {len(batch):,} messages was announced as {count:,}")
    offsets = range(first, first + count) if scattered is None else _integers(scattered, "<i8").astype(np.uint64)
    if len(offsets) != count:
        raise ProtocolError("bad-message", f"a batch of {count:,} messages has {len(offsets):,} offsets")
    return Part(offsets, batch)


def receipts_of(shares: Sequence[PlacedShare], batch: Batch) -> Receipts:
    if len(shares) == 1:
        [share] = shares
        if share.offsets is None and share.rows is None and share.count == len(batch):
            return Receipts(batch, (Share(share.partition, None, range(share.first, share.first + share.count)),))
    counts = [share.count for share in shares]
    if sum(counts) != len(batch) or min(counts, default=0) < 0:
        raise ProtocolError("bad-message", f"the receipts are not those of a batch of {len(batch):,}")
    return Receipts(batch, [_share_of(share) for share in shares])


def _share_of(placed: PlacedShare) -> Share:
    rows = None if placed.rows is None else _integers(placed.rows, "<u4").astype(np.int64)
    offsets: range | list[int] = range(placed.first, placed.first + placed.count)
    if placed.offsets is not None:
        offsets = _integers(placed.offsets, "<i8").tolist()
    if len(offsets) != placed.count or (rows is not None and len(rows) != placed.count):
        raise ProtocolError("bad-message", f"a share of {placed.count:,} receipts does not hold as many")
    return Share(placed.partition, rows, offsets)


def _integers(data: bytes, kind: str) -> np.ndarray:
    if len(data) % np.dtype(kind).itemsize:
        raise ProtocolError("bad-message", f"{len(data)} bytes are no whole number of integers")
    return np.frombuffer(data, dtype=kind)
