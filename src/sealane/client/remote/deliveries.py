"""From the wire to what lanes know: deliveries, receipts and stored batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    return Delivery(
        message.topic,
        message.partition,
        subscription,
        generation << GENERATION_SHIFT | message.lease,
        message.deadline_us,
        tuple(_parts_of(message.parts, body)),
        tuple((from_runs(runs), attempt) for runs, attempt in message.attempts) if message.attempts else (),
    )


def stored_of(parts: Sequence[WirePart], body: memoryview, limits: Limits, bytes_max: int) -> list[Stored]:
    """The answer to a request for about `bytes_max`, of a node with these limits: what comes compressed unpacks to no
    more than one batch beyond that.
    """
    batch_bytes_max = limits.batch_bytes_max + FRAMING_BYTES_MAX
    found: list[Stored] = []
    unpacked = 0
    for part in _parts_of(parts, body, batch_bytes_max):
        unpacked += part.batch.nbytes
        if unpacked > max(bytes_max, len(body)) + batch_bytes_max:
            raise ProtocolError("bad-message", f"more than {unpacked:,} bytes are no answer to {bytes_max:,} asked for")
        found.append(Stored(int(part.offsets[0]), part.batch))
    return found


def _parts_of(parts: Sequence[WirePart], body: memoryview, unpacked_bytes_max: int | None = None) -> Iterator[Part]:
    at = 0
    for first, count, size, scattered in parts:
        if size < 0 or at + size > len(body):
            raise ProtocolError("bad-message", f"a batch of {size:,} bytes is not in a body of {len(body):,}")
        batch = decode(body[at : at + size], limits=_WHATEVER_IS_STORED, unpacked_bytes_max=unpacked_bytes_max)
        offsets = range(first, first + count) if scattered is None else _integers(scattered, "<i8").astype(np.uint64)
        if len(batch) != count or len(offsets) != count:
            raise ProtocolError("bad-message", f"a batch of {len(batch):,} messages was announced as {count:,}")
        yield Part(offsets, batch)
        at += size


def receipts_of(shares: Sequence[PlacedShare], batch: Batch) -> Receipts:
    if len(shares) == 1 and shares[0].offsets is None and shares[0].rows is None and shares[0].count == len(batch):
        partition, first, count = shares[0].partition, shares[0].first, shares[0].count
        return Receipts(batch, (Share(partition, None, range(first, first + count)),))
    if sum(share.count for share in shares) != len(batch):
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
