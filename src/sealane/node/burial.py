"""The undertaker: moves messages that are out of attempts to their dead-letter topic, settling them in one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pyroaring import BitMap64

from sealane.delivery.dying import DeadGroup
from sealane.delivery.events import DeadLettered
from sealane.delivery.offsets import pack, take_first
from sealane.delivery.subscription import Subscription
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.message import Batch
from sealane.message.concat import concat
from sealane.node.commits import commit_together, stage
from sealane.node.dead_letters import MOVE_MESSAGES_MAX, Origin, dead_batch, dead_topic_name
from sealane.node.deliveries import Part, cut
from sealane.node.owner import PartitionOwner
from sealane.node.supervision import Supervisor
from sealane.node.topics import Topic

log = get_log("sealane.node")

RETRY_SECONDS = 1.0
"""A move that fails, for example on a full disk, is tried again after this long; the messages wait."""


class Undertaker:
    """One task a subscription that has dead messages; it ends when there are none left."""

    def __init__(
        self,
        dead_topic: Callable[[str, Topic], Awaitable[Topic]],
        topic_of: Callable[[PartitionOwner], Topic],
        supervisor: Supervisor,
    ) -> None:
        self._dead_topic = dead_topic
        self._topic_of = topic_of
        self._supervisor = supervisor
        self._tasks: dict[Subscription, asyncio.Task[None]] = {}
        self._closed = False

    def bury(self, owner: PartitionOwner, subscription: Subscription) -> None:
        """See to it that the subscription's dead messages are moved."""
        if subscription not in self._tasks and not self._closed:
            fields = {**owner.fields, "subscription": subscription.name}
            task = self._supervisor.keep("burial", lambda: self._run(owner, subscription), **fields)
            self._tasks[subscription] = task
            task.add_done_callback(lambda _: self._tasks.pop(subscription, None))

    async def settle(self) -> None:
        """Wait for moves that are under way."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Stop; what dies from here on is moved after the next start."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, owner: PartitionOwner, subscription: Subscription) -> None:
        while subscription.dying and not owner.closed and not _replaced(owner, subscription):
            try:
                await self._move(owner, subscription, subscription.dying[0])
            except (SealaneError, OSError) as error:
                if owner.closed or owner.error is not None or owner.engine.failure is not None:
                    return
                log.warning("dead letters wait", **owner.fields, subscription=subscription.name, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _move(self, owner: PartitionOwner, subscription: Subscription, group: DeadGroup) -> None:
        origin_topic = self._topic_of(owner)
        name = subscription.name.partition("@")[0]
        target = await self._dead_topic(dead_topic_name(origin_topic.name, name), origin_topic)
        offsets = take_first(group.offsets.copy(), MOVE_MESSAGES_MAX)
        parts: list[Part] = []
        missing = offsets.copy()
        while missing:
            at = missing.min()
            stored = await owner.fetch(at)
            if stored is None or stored.base > at:
                owner.lose(at, stored.base if stored else missing.max() + 1)
                return
            part, _ = cut(stored, missing)
            if part is not None:
                if parts and part.batch.meta.schema_id != parts[0].batch.meta.schema_id:
                    offsets.remove_range(at, offsets.max() + 1)  # They are moved next, with the id of their own schema.
                    break
                parts.append(part)
            missing.remove_range(0, stored.stop)
        if group not in subscription.dying or _replaced(owner, subscription):
            return  # A seek, a loss or a refused commit changed the picture while the messages were read.
        origin = Origin(owner.core.topic, name, owner.key.partition)
        attempts = subscription.attempts.failures(offsets.min())
        now_us = owner.clock()
        batch = concat([dead_batch(origin, group, part, attempts, now_us) for part in parts])
        await self._commit(owner, subscription, offsets, target.owners[owner.key.partition % len(target.owners)], batch)
        log.info(
            "messages are dead letters now",
            **owner.fields,
            subscription=name,
            count=len(offsets),
            first_offset=offsets.min(),
            cause=group.cause,
        )

    async def _commit(
        self, owner: PartitionOwner, subscription: Subscription, offsets: BitMap64, grave: PartitionOwner, batch: Batch
    ) -> None:
        publication = grave.plan(batch)
        event = DeadLettered(subscription.name, pack(offsets), owner.clock())
        durable_subscription = owner.core.subscriptions.get(subscription.name) is subscription
        shares = [stage(grave, publication)]
        if durable_subscription:
            shares.append(stage(owner, planned=[event]))
        durable = commit_together(owner.engine, shares)
        if not durable_subscription:
            subscription.apply(event)
        await asyncio.shield(durable)


def _replaced(owner: PartitionOwner, subscription: Subscription) -> bool:
    """Whether another object stands for this subscription now: the partition was folded again, and that one sees to it.

    A broadcast consumer's dead letters are moved even when it has left meanwhile.
    """
    return owner.core.subscriptions.get(subscription.name, subscription) is not subscription
