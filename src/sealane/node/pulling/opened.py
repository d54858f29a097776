"""What one taker has pulled and is still to answer for: counted, so that it is not given more than it can take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from sealane.delivery.events import Acked, Event, Extended, Failed, Granted, Released
from sealane.errors import SubscriptionNotFound, TopicNotFound
from sealane.node.owner import PartitionOwner
from sealane.node.pulling.pull import Pulled
from sealane.node.watchers import Watcher

_OF_ONE_LEASE = (Granted, Acked, Failed, Released, Extended)
"""What these are about is one lease; what else happens may end any."""


class Opened:
    """Of one subscription, over several pulls. `close` it when no more are taken."""

    def __init__(self, subscription: str, messages_max: int) -> None:
        self._subscription = subscription
        self._messages_max = messages_max
        self._counts: dict[tuple[PartitionOwner, int], int] = {}
        """By lease: how many of its messages are open. What has none any more is not here."""
        self._watched: dict[PartitionOwner, Watcher] = {}
        self._open = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many messages are neither settled nor given back nor due again."""
        return self._open

    def add(self, pulled: Pulled) -> None:
        """These were taken too."""
        if pulled.attachment is None:
            return
        for delivery in pulled.deliveries:
            owner, _ = pulled.attachment.find(delivery.partition)
            if owner not in self._watched:
                self._watched[owner] = partial(self._happened, owner)
                owner.watchers.add(self._watched[owner])
            self._counts[owner, delivery.lease] = 0
            self._count(owner, delivery.lease)

    async def room(self) -> int:
        """How many more may be taken: waits until that is at least one. Raises `TopicNotFound` or
        `SubscriptionNotFound` if there is nothing more to take them from.
        """
        while True:
            self._changed.clear()
            self._check()
            if self._open < self._messages_max:
                return self._messages_max - self._open
            await self._changed.wait()

    def close(self) -> None:
        for owner, watcher in self._watched.items():
            owner.watchers.discard(watcher)
        self._watched.clear()

    def _check(self) -> None:
        for owner in self._watched:
            topic = owner.core.topic
            if owner.closed:
                raise TopicNotFound(topic, "it was deleted")
            if self._subscription not in owner.core.subscriptions:
                raise SubscriptionNotFound(f"{topic}:{self._subscription}", "it was deleted")

    def _happened(self, owner: PartitionOwner, events: Sequence[Event] | None) -> None:
        for event in events or ():
            if not isinstance(event, _OF_ONE_LEASE):
                events = None
                break
            self._count(owner, event.lease)
        if events is None:
            for known, lease in list(self._counts):
                if known is owner:
                    self._count(owner, lease)
        self._changed.set()

    def _count(self, owner: PartitionOwner, lease: int) -> None:
        before = self._counts.get((owner, lease))
        if before is None:
            return
        subscription = owner.core.subscriptions.get(self._subscription)
        held = subscription.leases.by_id.get(lease) if subscription is not None else None
        now = len(held.offsets) if held is not None else 0
        self._open += now - before
        if now:
            self._counts[owner, lease] = now
        else:
            del self._counts[owner, lease]
