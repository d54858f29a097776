"""What the holder of a ticket does about its messages: all of them, or those with these ids.

Answers may be repeated, since whoever asks over HTTP may not have heard the first one: what is settled already stays
so and is no error. What is neither leased any more nor settled is `LeaseLost`: it may be delivered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pyroaring import BitMap64

from sealane.delivery.offsets import span
from sealane.errors import InvalidArgument, LeaseLost
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Group
from sealane.node.pulling.ticket import LeasedRun, Ticket
from sealane.node.topics import Topic

SEARCH_BATCHES_MAX = 10_000
"""Stored batches that are looked through for what a lease does not hold any more: as many as a pull can have. A ticket
that was tampered with could name a whole log."""


class Held:
    """The messages of one pull."""

    def __init__(self, topic: Topic, subscription: str, ticket: Ticket) -> None:
        """Raises `SubscriptionNotFound`, and `InvalidArgument` for a ticket of another topic."""
        if any(run.partition >= len(topic.owners) for run in ticket.leases):
            raise InvalidArgument("lease", f"is not of topic {topic.full_name!r}, which has fewer partitions")
        group = Group(subscription, topic.owners[0].core.subscription(subscription).config)
        self._ticket = ticket
        # It never takes messages: it answers for leases that another one of its name has left behind.
        self._attachment = Attachment(topic, group, Consumer(ticket.consumer, _no, _no, _no, bound=False), None)

    async def ack(self, ids: Sequence[UUID] | None = None) -> None:
        """Settle them, durably."""
        for run, offsets in await self._chosen(ids):
            await self._attachment.ack(run.partition, run.lease, offsets)

    async def nack(self, ids: Sequence[UUID] | None, *, delay: float | None, reason: str | None) -> None:
        """Give them back as failed, durably."""
        for run, offsets in await self._chosen(ids):
            await self._attachment.nack(run.partition, run.lease, offsets, delay=delay, reason=reason, confirm=True)

    async def extend(self, seconds: float) -> int:
        """Move the deadline of all of them to `seconds` from now, durably, and return it."""
        deadlines = []
        for partition, lease in dict.fromkeys((run.partition, run.lease) for run in self._ticket.leases):
            if self._attachment.holds(partition, lease):
                deadlines.append(await self._attachment.extend(partition, lease, seconds))
                owner, _ = self._attachment.find(partition)
                await owner.flush()
        if not deadlines:
            raise LeaseLost(self._attachment.group.name, "it has expired or everything in it is settled")
        return min(deadlines)

    async def leased(self, ids: Sequence[UUID] | None = None) -> list[tuple[Attachment, int, int, BitMap64]]:
        """What is still held of them, as a transaction settles it: (attachment, partition, lease, offsets). Raises
        `LeaseLost` if some of them is not held any more, settled or not.
        """
        chosen = [(self._attachment, run.partition, run.lease, held) for run, held in await self._chosen(ids)]
        if not chosen or (ids is not None and sum(len(held) for *_, held in chosen) < len(set(ids))):
            raise LeaseLost(self._attachment.group.name, "some of it is settled already")
        return chosen

    async def _chosen(self, ids: Sequence[UUID] | None) -> list[tuple[LeasedRun, BitMap64]]:
        """What is still held of what is meant, by lease. Raises if some of it is lost, before anything is done."""
        leased = [(run, self._leased(run)) for run in self._ticket.leases]
        if ids is not None:
            return await self._with_ids(leased, {each.bytes for each in ids})
        for run, held in leased:
            if not held:
                self._check_settled(run, self._unsettled(run))
        return _by_lease(leased)

    async def _with_ids(
        self, leased: Sequence[tuple[LeasedRun, BitMap64]], wanted: set[bytes]
    ) -> list[tuple[LeasedRun, BitMap64]]:
        chosen = [(run, await self._find(run, held, wanted, len(held))) for run, held in leased]
        for run, held in leased:
            if wanted:
                # It may have been answered for before.
                others = span(run.first, self._stop(run)) - held
                self._check_settled(run, await self._find(run, others, wanted, SEARCH_BATCHES_MAX))
        if wanted:
            raise InvalidArgument("ids", f"{UUID(bytes=min(wanted))} is not a message of this lease; nothing was done")
        return _by_lease(chosen)

    def _leased(self, run: LeasedRun) -> BitMap64:
        """All of it that the lease holds now; nothing if it is over, or not this ticket's."""
        if not self._attachment.holds(run.partition, run.lease):
            return BitMap64()
        _, subscription = self._attachment.find(run.partition)
        held = subscription.leases.held(run.lease, None)
        # A lease may be shared by several tickets, each with a run of its own. Cut off, since a run that was tampered
        # with may be too long to be made.
        held.remove_range(0, run.first)
        held.remove_range(run.last + 1, held.max() + 1 if held else 0)
        return held

    def _unsettled(self, run: LeasedRun) -> BitMap64:
        _, subscription = self._attachment.find(run.partition)
        return subscription.settled.without(run.first, self._stop(run))

    def _stop(self, run: LeasedRun) -> int:
        """Where it ends, whatever the ticket says: not behind the log."""
        owner, _ = self._attachment.find(run.partition)
        return min(run.last + 1, owner.core.visible)

    def _check_settled(self, run: LeasedRun, offsets: BitMap64) -> None:
        """Raise if one of these is open: it is not leased any more."""
        _, subscription = self._attachment.find(run.partition)
        lost = next((offset for offset in offsets if offset not in subscription.settled), None)
        if lost is not None:
            detail = f"the message at offset {lost} of partition {run.partition} is not leased any more"
            raise LeaseLost(subscription.name, f"{detail}, and may come again; nothing was done")

    async def _find(self, run: LeasedRun, among: BitMap64, wanted: set[bytes], batches_max: int) -> BitMap64:
        """Those of the offsets whose messages are wanted; found, they are wanted no more."""
        owner, _ = self._attachment.find(run.partition)
        found, left = BitMap64(), among.copy()
        for _ in range(batches_max):
            stored = await owner.fetch(left.min()) if wanted and left else None
            if stored is None:
                break
            for offset, identity in enumerate(stored.batch.ids(), stored.base):
                if identity in wanted and offset in left:
                    wanted.discard(identity)
                    found.add(offset)
            left.remove_range(0, stored.stop)
        return found


def _by_lease(chosen: Sequence[tuple[LeasedRun, BitMap64]]) -> list[tuple[LeasedRun, BitMap64]]:
    """What is chosen of each lease together, where there is something: each is answered for at once."""
    found: dict[tuple[int, int], tuple[LeasedRun, BitMap64]] = {}
    for run, offsets in chosen:
        if offsets:
            first, others = found.get((run.partition, run.lease), (run, BitMap64()))
            found[run.partition, run.lease] = first, others | offsets
    return list(found.values())


def _no(event: object) -> None:
    """Nothing comes to it."""
