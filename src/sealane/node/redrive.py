"""Driving dead letters back to the subscription that had given them up.

They are published again to their topic, addressed to that subscription alone, in one commit with their settling in
the dead-letter topic: a crash at any point leaves each of them in exactly one of the two.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap64

from sealane.delivery.events import Acked
from sealane.delivery.filters import Filter, compile_filter
from sealane.delivery.offsets import pack
from sealane.errors import InvalidArgument
from sealane.node.commits import commit_together, stage
from sealane.node.dead_letters import MOVE_MESSAGES_MAX, PREFIX, REDRIVE_SUBSCRIPTION, headers_of, revived_batch
from sealane.node.deliveries import Part, cut, offsets_of
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import spread
from sealane.node.topics import Topic


@dataclass(frozen=True, slots=True)
class RedriveWish:
    """Which dead letters are to be driven back, and how."""

    matching: str | None = None
    """A filter expression over the dead letters; None: all of them."""
    dry_run: bool = False
    rate: float | None = None
    """Messages a second; None: as fast as it goes."""
    messages_max: int | None = None
    offsets: Mapping[int, BitMap64] | None = None
    """Which messages of the dead-letter topic, by partition; what went back before is passed over. None: all."""


@dataclass(frozen=True, slots=True)
class RedriveOrder:
    topic: Topic
    dead: Topic
    subscription: str
    wish: RedriveWish
    progress: Callable[[int], None] | None = None


@dataclass(slots=True)
class RedriveReport:
    dry_run: bool
    messages: int = 0
    """Driven back, or in a dry run: that would be."""
    reasons: Counter[str] = field(default_factory=Counter)


async def redrive(order: RedriveOrder) -> RedriveReport:
    """Carry the order out; what has come back stays so if it is interrupted."""
    wish = order.wish
    if wish.rate is not None and wish.rate <= 0:
        raise InvalidArgument("rate", f"{wish.rate} is not more than 0 messages a second")
    for owner in order.topic.owners:
        owner.core.subscription(order.subscription)  # To one that is gone they would come back to nobody.
    for owner in order.dead.owners:
        await owner.durable(owner.core.end)  # What is on its way here comes along.
    unknown = set(wish.offsets or ()) - {owner.key.partition for owner in order.dead.owners}
    if unknown:
        raise InvalidArgument("offsets", f"{order.dead.full_name} has no partition {min(unknown)}")
    matching = None if wish.matching is None else compile_filter(wish.matching)
    report = RedriveReport(wish.dry_run)
    stride = MOVE_MESSAGES_MAX if wish.rate is None else max(1, min(MOVE_MESSAGES_MAX, round(wish.rate / 10)))
    for owner in order.dead.owners:
        only = None if wish.offsets is None else wish.offsets.get(owner.key.partition, BitMap64())
        async for part in _dead_letters(owner, only, matching, stride):
            if wish.messages_max is not None:
                left = wish.messages_max - report.messages
                if left <= 0:
                    return report
                part = Part(part.offsets[:left], part.batch.slice(0, min(left, len(part.batch))))
            if not wish.dry_run:
                await _return(order, owner, part)
            report.messages += len(part.batch)
            report.reasons.update((headers or {}).get(f"{PREFIX}reason", "") for headers in headers_of(part.batch))
            if order.progress is not None:
                order.progress(report.messages)
            if wish.rate is not None and not wish.dry_run:
                await asyncio.sleep(len(part.batch) / wish.rate)
    return report


async def _dead_letters(
    owner: PartitionOwner, only: BitMap64 | None, matching: Filter | None, stride: int
) -> AsyncIterator[Part]:
    """The partition's unsettled messages that match, in order, a few at a time; of these alone, if any are named."""
    settled = owner.core.subscription(REDRIVE_SUBSCRIPTION).settled
    pending = settled.without(settled.floor, owner.core.visible)
    if only is not None:
        pending &= only
    while pending:
        at = pending.min()
        stored = await owner.fetch(at)
        if stored is None:
            return
        part, _ = cut(stored, pending)
        pending.remove_range(0, stored.stop)
        if part is not None and matching is not None:
            rows = np.flatnonzero(matching.matches(part.batch).to_numpy(zero_copy_only=False))
            part = Part(np.asarray(part.offsets, dtype=np.uint64)[rows], part.batch.take(rows)) if len(rows) else None
        if part is not None:
            for start in range(0, len(part.batch), stride):
                stop = min(start + stride, len(part.batch))
                yield Part(part.offsets[start:stop], part.batch.slice(start, stop))


async def _return(order: RedriveOrder, owner: PartitionOwner, part: Part) -> None:
    """One commit: the messages are back in their topic and no longer here."""
    batch = revived_batch(part.batch, order.subscription)
    settled = Acked(REDRIVE_SUBSCRIPTION, 0, pack(offsets_of(part)), owner.clock())
    shares = [stage(target, target.plan(share)) for target, _, share in spread(order.topic, batch)]
    shares.append(stage(owner, planned=[settled]))
    await asyncio.shield(commit_together(owner.engine, shares))
    order.topic.owners[0].witness.measures.subscription(order.subscription).redriven += len(batch)
