"""What a consumer is sent: leased messages, cut out of stored batches without copying where they lie together."""

from __future__ import annotations

import msgspec
import numpy as np
from pyroaring import BitMap64

from sealane.delivery.offsets import from_array, span, to_array
from sealane.delivery.subscription import Subscription
from sealane.engine import Stored
from sealane.message import Batch


class Part(msgspec.Struct, frozen=True, eq=False):
    """Messages of one stored batch. `offsets` is a range where they lie together, else an array."""

    offsets: range | np.ndarray
    batch: Batch


class Delivery(msgspec.Struct, frozen=True, eq=False):
    """One lease's messages, in the order in which they are to be handled."""

    topic: str
    partition: int
    subscription: str
    lease: int
    deadline_us: int
    parts: tuple[Part, ...]
    attempts: tuple[tuple[BitMap64, int], ...]
    """Offsets that are not at their first attempt, with the attempt they are at."""

    def __len__(self) -> int:
        return sum(len(part.batch) for part in self.parts)


def offsets_of(part: Part) -> BitMap64:
    if isinstance(part.offsets, range):
        return span(part.offsets.start, part.offsets.stop)
    return from_array(part.offsets)


def cut(stored: Stored, offsets: BitMap64) -> tuple[Part | None, BitMap64]:
    """The wanted messages of a stored batch, and which they were."""
    these = offsets & span(stored.base, stored.stop)
    if not these:
        return None, these
    low, high = these.min(), these.max()
    if high - low + 1 == len(these):
        return Part(range(low, high + 1), stored.batch.cut(low - stored.base, high + 1 - stored.base)), these
    values = to_array(these)
    return Part(values, stored.batch.take((values - np.uint64(stored.base)).astype(np.int64))), these


def later_attempts(subscription: Subscription, offsets: BitMap64) -> tuple[tuple[BitMap64, int], ...]:
    if not subscription.attempts.levels:
        return ()
    groups = subscription.attempts.by_failures(offsets)
    return tuple((group, failures + 1) for failures, group in groups if failures)
