"""Handing out messages: one dispatcher for each subscription of a partition that has consumers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from sealane.delivery.events import Granted
from sealane.delivery.offsets import unpack
from sealane.delivery.subscription import Subscription
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.node.consumers import Consumer, Group, Revocation
from sealane.node.deliveries import Delivery, Part, cut, later_attempts, offsets_of
from sealane.node.eager import Begun, begin, raising
from sealane.node.supervision import Backoff

if TYPE_CHECKING:
    from sealane.node.owner import PartitionOwner

log = get_log("sealane.node")

KEYED_READY_MAX = 100_000
"""A key-shared subscription stops scanning ahead here: behind a blocked key it would otherwise read the whole log."""
LOOK_AHEAD_BATCHES = 1_000
"""How many batches are looked into before a grant for messages that are more urgent than those found already. Batches
of the usual priority cost nothing; behind more than this many others an urgent message waits for the next grant."""


class Dispatcher:
    """Scans, grants and delivers whenever something may have become possible (`wake`)."""

    def __init__(self, owner: PartitionOwner, subscription: Subscription, group: Group) -> None:
        self._owner = owner
        self._subscription = subscription
        self._group = group
        self._wake = asyncio.Event()
        self._wake.set()
        self._waking = False
        self._idle = False
        """Whether its task waits to be woken."""
        self._begun: Begun | None = None
        """What was begun without the task and turned out to need a wait."""
        self._stopped = False
        fields = {**owner.fields, "subscription": subscription.name}
        self._task = owner.supervisor.keep("dispatch", self._run, **fields)

    def wake(self) -> None:
        """Look soon, once those who wait for the same thing, such as a publisher for its receipt, have heard of it."""
        if not self._waking:
            self._waking = True
            asyncio.get_running_loop().call_soon(self._awake)

    def _awake(self) -> None:
        """Messages that were just published are in memory: handing them out takes no wait, and so no task."""
        self._waking = False
        if self._idle and not self._stopped:
            try:
                if self._hand_out_fresh():
                    return
                self._begun = begin(self._serve_while_possible())
            except Exception as error:
                self._begun = raising(error)
            if self._begun is None:
                return
            self._idle = False
        self._wake.set()

    def stop(self) -> None:
        """Grant no more; `close` waits for what is under way."""
        self._stopped = True
        self._task.cancel()

    async def close(self) -> None:
        self.stop()
        await asyncio.wait([self._task])
        self._drop_begun()

    def _drop_begun(self) -> None:
        if self._begun is not None:
            self._begun.close()

    async def moved_to(self, subscription: Subscription) -> Dispatcher:
        """A new dispatcher for the same consumers, on a subscription that was folded again."""
        await self.close()
        return Dispatcher(self._owner, subscription, self._group)

    def revoke(self, lease_id: int, offsets: BitMap64) -> None:
        """Messages left a lease by other than its consumer's doing."""
        for consumer in self._group.consumers.values():
            consumer.revoke(Revocation(self._owner.key.partition, lease_id, offsets))

    async def _run(self) -> None:
        pauses = Backoff()
        self._wake.set()  # What a crash has interrupted is still to be done.
        try:
            while True:
                self._idle = not self._wake.is_set()
                await self._wake.wait()
                self._idle = False
                self._wake.clear()
                try:
                    if (begun := self._begun) is not None:
                        self._begun = None
                        await begun
                    await self._serve_while_possible()
                except (SealaneError, OSError) as error:
                    # A partition that cannot be read must not take the node with it: its consumers wait, loudly.
                    fields = {**self._owner.fields, "subscription": self._subscription.name}
                    log.warning("delivering waits", **fields, reason=str(error))
                    await asyncio.sleep(pauses.next_seconds(asyncio.get_running_loop().time()))
                    self._wake.set()
        finally:
            self._drop_begun()

    def _hand_out_fresh(self) -> bool:
        """Grant and deliver the batch that was published just now, if that is all that there is to do.

        It is what nearly every publish comes to where consumers keep up, and takes half of the time of the general
        way, which looks for whatever else may be ready. False: nothing has happened.
        """
        owner, subscription = self._owner, self._subscription
        start, stop = subscription.scanned, owner.core.visible
        if start >= stop or owner.supervisor.failure is not None or not owner.core.is_plain_from(start):
            return False
        stored = owner.engine.recent(owner.key, start)
        if stored is None or stored.base != start or stored.stop != stop:
            return False
        nbytes = stored.batch.nbytes
        takers = self._group.takers()
        if not takers or takers[0].credit < stop - start or nbytes >= owner.settings.delivery_bytes_max:
            return False
        consumer = takers[0]
        grant = subscription.grant_fresh(
            consumer.id, stop, lease=owner.next_lease(1), now_us=owner.clock(), bound=consumer.bound
        )
        if grant is None:
            return False
        self._group.served(consumer)
        consumer.credit -= stop - start
        delivery = self._delivery(grant, [Part(range(start, stop), stored.batch)], ())
        sent = False
        try:
            consumer.deliver(delivery)
            sent = True
        finally:
            # After the messages are out: nobody waits for it.
            owner.note_journal_of(subscription, [grant], soon=False)
            if sent:
                owner.witness.delivered(delivery, nbytes, subscription)
            else:
                self._release_unseen(grant)
            owner.see_to(subscription, [grant])
        return True

    async def _serve_while_possible(self) -> None:
        while await self._serve_everyone():
            pass

    async def _serve_everyone(self) -> bool:
        served = False
        for consumer in self._group.takers():
            served |= await self._serve(consumer)
        return served

    async def _serve(self, consumer: Consumer) -> bool:
        """Grant and deliver once. False when there is nothing for this consumer."""
        owner, subscription = self._owner, self._subscription
        if not subscription.backlog.has_ready(consumer.id):
            if subscription.scanned >= owner.core.visible:
                return False
            await self._scan(consumer)
        await self._look_ahead()
        if consumer.credit <= 0 or consumer.paused or consumer.id not in self._group.consumers:
            return False
        if owner.supervisor.failure is not None:
            return False
        count = min(consumer.credit, max(1, owner.settings.delivery_bytes_max // owner.message_bytes))
        now_us = owner.clock()
        grants = subscription.grant(
            consumer.id, count, lease_from=owner.next_lease(10), now_us=now_us, bound=consumer.bound
        )
        if not grants:
            return False
        self._group.served(consumer)
        owner.note_journal_of(subscription, grants, soon=False)
        leased = [unpack(grant.offsets) for grant in grants]
        consumer.credit -= sum(map(len, leased))
        attempts = [later_attempts(subscription, offsets) for offsets in leased]
        try:
            for grant, offsets, later in zip(grants, leased, attempts, strict=True):
                await self._send(consumer, grant, offsets, later)
        finally:
            owner.see_to(subscription, grants)  # After the messages are out: nobody waits for it.
        return True

    async def _scan(self, consumer: Consumer) -> None:
        """Look further along the log until something is ready for this consumer, or there is no more."""
        subscription = self._subscription
        while not subscription.backlog.has_ready(consumer.id):
            if subscription.config.mode == "key-shared" and subscription.backlog.ready_count() >= KEYED_READY_MAX:
                return
            if not await self._scan_batch():
                return

    async def _look_ahead(self) -> None:
        """Let what has another priority be known before less urgent messages are granted."""
        core, subscription = self._owner.core, self._subscription
        if subscription.config.mode == "key-shared":
            return
        for _ in range(LOOK_AHEAD_BATCHES):
            is_known = not core.unplain or core.unplain.max() < subscription.scanned
            if is_known and subscription.backlog.has_less_urgent():
                # What is left to look at is of the default priority, and goes first.
                is_known = subscription.scanned >= core.visible
            if is_known or not await self._scan_batch():
                return

    async def _scan_batch(self) -> bool:
        """Scan as far as that needs no data, and then the batch that does. False at the end of the log."""
        owner, subscription = self._owner, self._subscription
        needed = owner.core.advance(subscription, self._group.name)
        if needed is None:
            return False
        stored = await owner.fetch(needed)
        if subscription.scanned != needed:
            return True  # A seek came in between.
        if stored is None or stored.base > needed:
            owner.lose(needed, stored.base if stored else owner.core.visible)
            subscription.scanned = max(subscription.scanned, stored.base if stored else owner.core.visible)
        else:
            owner.note(subscription, owner.core.scan(subscription, stored.base, stored.batch, owner.clock()))
        return True

    async def _send(
        self, consumer: Consumer, grant: Granted, offsets: BitMap64, attempts: tuple[tuple[BitMap64, int], ...]
    ) -> None:
        sent = False
        try:
            parts, nbytes = await self._parts(offsets)
            held = self._subscription.leases.held(grant.lease, offsets)
            if held != offsets:
                # The lease, or some of it, ended while the messages were read from disk.
                parts, nbytes = await self._parts(held)
            if parts and consumer.id in self._group.consumers:
                delivery = self._delivery(grant, parts, attempts)
                consumer.deliver(delivery)
                sent = True
                self._owner.witness.delivered(delivery, nbytes, self._subscription)
                if nbytes >= self._owner.settings.delivery_bytes_max:
                    self._take_rest_back(consumer, delivery, nbytes)
        finally:
            if not sent:
                self._release_unseen(grant)

    def _release_unseen(self, grant: Granted) -> None:
        """The consumer left, or this dispatcher was closed: nobody has seen the messages."""
        released = self._subscription.release(grant.lease, None)
        if released:
            self._owner.revoked(self._subscription, released)
            self._owner.note(self._subscription, released)

    def _take_rest_back(self, consumer: Consumer, delivery: Delivery, nbytes: int) -> None:
        """Messages were larger than was thought: what did not go with the others is ready again, and goes next."""
        owner, subscription = self._owner, self._subscription
        rest = subscription.leases.held(delivery.lease, None)
        for part in delivery.parts:
            rest -= offsets_of(part)
        if not rest:
            return
        owner.message_bytes = max(1, nbytes // len(delivery))
        consumer.credit += len(rest)
        released = subscription.release(delivery.lease, rest)
        # Of the first the consumer knows nothing; the others are what was granted beyond it, of the same keys.
        owner.revoked(subscription, released[1:])
        owner.note(subscription, released)

    def _delivery(self, grant: Granted, parts: list[Part], attempts: tuple[tuple[BitMap64, int], ...]) -> Delivery:
        owner = self._owner
        return Delivery(
            owner.core.topic,
            owner.key.partition,
            self._group.name,
            grant.lease,
            grant.deadline_us,
            tuple(parts),
            attempts,
        )

    async def _parts(self, offsets: BitMap64) -> tuple[list[Part], int]:
        """The messages, and about how many bytes they have: each batch's are shared out evenly, which costs nothing.

        Not all of them if that is too much for one delivery.
        """
        parts: list[Part] = []
        nbytes = 0
        missing = offsets.copy()
        while missing and nbytes < self._owner.settings.delivery_bytes_max:
            at = missing.min()
            stored = await self._owner.fetch(at)
            if stored is None or stored.base > at:
                stop = min(stored.base if stored else missing.max() + 1, missing.max() + 1)
                self._owner.lose(at, stop)
                missing.remove_range(0, stop)
                continue
            part, _ = cut(stored, missing)
            if part is not None:
                parts.append(part)
                nbytes += stored.batch.nbytes * len(part.batch) // len(stored.batch)
            missing.remove_range(0, stored.stop)
        return parts, nbytes
