"""Taking messages once: a consumer that stays for as long as it waits, and leaves its leases behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.offsets import to_array
from sealane.errors import InvalidArgument, ModeConflict, SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery, offsets_of
from sealane.node.node import Node
from sealane.node.pulling.ticket import LEASES_MAX, SECRET_BYTES, LeasedRun, Ticket, consumer_of
from sealane.node.topics import Topic

PULL_MESSAGES_MAX = 10_000
"""Messages of one pull: the lease of more would be longer than one client works at."""
PULL_WAIT_SECONDS_MAX = 60.0
"""Longer waits meet proxies that give up on a silent request; who wants to wait on asks again."""
LOOK_SECONDS = 0.25
"""Who does not want to wait gets what is there: so long may it take to be read from disk."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull brought, and the lease under which its messages are settled; None if there is nothing."""

    lease: str | None
    deliveries: tuple[Delivery, ...]
    deadline_us: int = 0
    """When the messages come back unless they are settled."""
    attachment: Attachment | None = field(default=None, repr=False, compare=False)
    """By which they were taken; None if there is nothing."""

    def __len__(self) -> int:
        return sum(map(len, self.deliveries))


class Pull:
    """One consumer for the length of one pull."""

    def __init__(self, node: Node, messages_max: int, wait_seconds: float) -> None:
        """Raises `InvalidArgument`."""
        if not 1 <= messages_max <= PULL_MESSAGES_MAX:
            raise InvalidArgument("max", f"{messages_max:,} is not in 1 to {PULL_MESSAGES_MAX:,} messages")
        if not 0 <= wait_seconds <= PULL_WAIT_SECONDS_MAX:
            raise InvalidArgument("wait", f"{wait_seconds:g} is not in 0 to {PULL_WAIT_SECONDS_MAX:g} seconds")
        self._messages_max = messages_max
        self._wait_seconds = wait_seconds
        self._secret = node.surroundings.entropy(SECRET_BYTES)
        self._deliveries: list[Delivery] = []
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done with the first messages, or when there will be none."""
        self.consumer = Consumer(consumer_of(self._secret), self._deliver, self._revoke, self._closed, bound=False)

    def _deliver(self, delivery: Delivery) -> None:
        self._deliveries.append(delivery)
        if not self._came.done():
            self._came.set_result(None)

    def _revoke(self, revocation: Revocation) -> None:
        """Who answers for it later is told that it was lost."""

    def _closed(self, error: SealaneError) -> None:
        if not self._came.done():
            self._came.set_exception(error)

    async def take(self, attachment: Attachment) -> Pulled:
        """What there is, or what comes first while it waits. What it returns is leased durably: a node that restarts
        knows of it. Whoever is cancelled meanwhile gives everything back.
        """
        try:
            await self._wait(attachment)
            taken, beyond = self._deliveries[:LEASES_MAX], self._deliveries[LEASES_MAX:]
            attachment.leave([leased(delivery) for delivery in beyond])
            self._deliveries = taken
            for delivery in self._deliveries:
                owner, _ = attachment.find(delivery.partition)
                await owner.flush()
            await attachment.end()
        except BaseException:
            attachment.leave([leased(delivery) for delivery in self._deliveries])
            await attachment.end()
            raise
        return self._pulled(attachment)

    async def _wait(self, attachment: Attachment) -> None:
        seconds = self._wait_seconds
        if attachment.may_be_served():
            seconds = max(seconds, LOOK_SECONDS)
        attachment.add_credit(self._messages_max)
        await asyncio.wait([self._came], timeout=seconds)
        if self._came.done():
            self._came.result()
            # The other partitions are served in the same pass of the loop, or in the next.
            await asyncio.sleep(0)
        else:
            self._came.cancel()

    def _pulled(self, attachment: Attachment) -> Pulled:
        if not self._deliveries:
            return Pulled(None, ())
        lease = ticket_of(self._secret, self._deliveries).text()
        deadline_us = min(delivery.deadline_us for delivery in self._deliveries)
        return Pulled(lease, tuple(self._deliveries), deadline_us, attachment)


def config_of(topic: Topic | None, subscription: str) -> SubscriptionConfig:
    """How the subscription works, or what a new one gets. Raises `ModeConflict` for one that cannot be pulled."""
    group = topic.groups.get(subscription) if topic is not None else None
    existing = topic.owners[0].core.subscriptions.get(subscription) if topic is not None and topic.owners else None
    config = group.config if group is not None else existing.config if existing is not None else SubscriptionConfig()
    if config.mode == "broadcast":
        raise ModeConflict(subscription, "its mode is broadcast, which has no position between two pulls")
    return config


def ticket_of(secret: bytes, deliveries: Sequence[Delivery]) -> Ticket:
    """A lease has a run for each part of it that lies together, so that nothing else is taken for a part of it. Where
    that would be too many it has one: then an answer that is repeated may be refused, and no more.
    """
    runs = [run for delivery in deliveries for run in _runs(*leased(delivery))]
    if len(runs) > LEASES_MAX:
        all_of_it = [leased(delivery) for delivery in deliveries]
        runs = [LeasedRun(partition, lease, it.min(), it.max()) for partition, lease, it in all_of_it]
    return Ticket(secret, tuple(runs))


def _runs(partition: int, lease: int, offsets: BitMap64) -> list[LeasedRun]:
    if offsets.max() - offsets.min() + 1 == len(offsets):
        return [LeasedRun(partition, lease, offsets.min(), offsets.max())]
    values = to_array(offsets)
    runs = np.split(values, np.flatnonzero(np.diff(values) != 1) + 1)
    return [LeasedRun(partition, lease, int(run[0]), int(run[-1])) for run in runs]


def leased(delivery: Delivery) -> tuple[int, int, BitMap64]:
    """Which messages it holds: (partition, lease, offsets)."""
    offsets = BitMap64()
    for part in delivery.parts:
        offsets |= offsets_of(part)
    return delivery.partition, delivery.lease, offsets
