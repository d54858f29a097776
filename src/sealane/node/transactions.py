"""Transactions: publishes and acks in one commit, once under the id that the caller gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyroaring import BitMap64

from sealane.delivery.events import Event, TransactionDone
from sealane.delivery.partition import Publication
from sealane.delivery.subscription import Subscription
from sealane.engine import Engine
from sealane.errors import InvalidArgument, LeaseLost, QueueFull, TransactionAborted
from sealane.message import Batch
from sealane.message.concat import concat
from sealane.message.names import DEFAULT_DOMAIN
from sealane.node.commits import Staged, by_schema, commit_together, stage, stage_all, within_limits
from sealane.node.locks import Locks
from sealane.node.owner import PartitionOwner
from sealane.node.registry import TopicRegistry
from sealane.node.topic_config import TopicConfig

COORDINATOR = "_transactions"
"""The topic whose journal remembers which transactions are done, those of all domains."""
TRANSACTION_ID_CHARS_MAX = 256
"""An id is remembered by its digest; the limit is for logs and errors."""


def check_transaction_id(transaction: str) -> None:
    """Raise `InvalidArgument` if it can be none."""
    if not transaction or len(transaction) > TRANSACTION_ID_CHARS_MAX:
        raise InvalidArgument("transaction", f"an id has 1 to {TRANSACTION_ID_CHARS_MAX} characters")


async def coordinator_of(registry: TopicRegistry, *, durable: bool) -> PartitionOwner:
    """Who remembers which transactions are done: of topics that are kept in memory somebody else does."""
    name = COORDINATOR if durable else f"{COORDINATOR}.memory"
    topic = await registry.ensure(DEFAULT_DOMAIN, name, TopicConfig(durable=durable, retention_seconds=0))
    topic.check()
    return topic.owners[0]


class TransactionId(NamedTuple):
    """What a transaction is called, and in which domain: nobody can use up the ids of another one's."""

    domain: str
    name: str

    @property
    def remembered(self) -> str:
        """As the coordinator remembers it: never the same for two domains, since those have no slash in their names."""
        plain = self.domain == DEFAULT_DOMAIN and "/" not in self.name
        return self.name if plain else f"{self.domain}/{self.name}"


@dataclass(frozen=True, slots=True)
class TransactionAck:
    owner: PartitionOwner
    subscription: Subscription
    lease: int
    offsets: BitMap64


@dataclass(slots=True)
class _Share:
    """What a transaction does to one partition."""

    batches: list[Batch] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    publication: Publication | None = None


class Transactions:
    """Commits transactions; a second one under the same id, at the same time or later, changes nothing."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, TransactionId], asyncio.Future[None]] = {}
        self._locks = Locks()

    def alone(self, remembered: str) -> asyncio.Lock:
        """Held by whoever commits under this id, by the name under which it is remembered: one after the other."""
        return self._locks(remembered)

    async def commit(
        self,
        coordinator: PartitionOwner,
        transaction: TransactionId,
        publishes: Sequence[tuple[PartitionOwner, Batch]],
        acks: Sequence[TransactionAck],
    ) -> bool:
        """Returns True if it took effect now, False if it had before."""
        async with self.alone(transaction.remembered):
            if await self._has_run(coordinator, transaction):
                return False
            await asyncio.shield(self._start(coordinator, transaction, publishes, acks))
            return True

    def _start(
        self,
        coordinator: PartitionOwner,
        transaction: TransactionId,
        publishes: Sequence[tuple[PartitionOwner, Batch]],
        acks: Sequence[TransactionAck],
    ) -> asyncio.Future[None]:
        running_as = (coordinator.key.domain, transaction)
        shares = self._shares(coordinator, transaction, publishes, acks)
        engine = _one_engine(transaction, shares)
        staged = [_stage(owner, share) for owner, share in shares.items()]
        durable = commit_together(engine, staged)
        self._running[running_as] = durable
        durable.add_done_callback(lambda _: self._running.pop(running_as, None))
        return durable

    async def is_done(self, coordinator: PartitionOwner, transaction: TransactionId) -> bool:
        """Whether it has been committed, durably; one that is under way is waited for."""
        async with self.alone(transaction.remembered):
            return await self._has_run(coordinator, transaction)

    async def _has_run(self, coordinator: PartitionOwner, transaction: TransactionId) -> bool:
        # One whose caller has gone is under way still, and nobody holds its lock.
        running = self._running.get((coordinator.key.domain, transaction))
        if running is not None:
            await asyncio.shield(running)
            return True
        if coordinator.core.transaction_done(transaction.remembered):
            await coordinator.flush()
            return True
        return False

    def _shares(
        self,
        coordinator: PartitionOwner,
        transaction: TransactionId,
        publishes: Sequence[tuple[PartitionOwner, Batch]],
        acks: Sequence[TransactionAck],
    ) -> dict[PartitionOwner, _Share]:
        now_us = coordinator.clock()
        shares: dict[PartitionOwner, _Share] = {
            coordinator: _Share(events=[TransactionDone(transaction.remembered, now_us)])
        }
        for ack in acks:
            event = ack.subscription.ack_whole(ack.lease, ack.offsets, now_us)
            if event is None:
                lost = LeaseLost(ack.subscription.name, f"lease {ack.lease} no longer holds what is to be acknowledged")
                raise TransactionAborted(transaction.name, str(lost)) from lost
            shares.setdefault(ack.owner, _Share()).events.append(event)
        for owner, batch in publishes:
            shares.setdefault(owner, _Share()).batches.append(batch)
        for owner, share in shares.items():
            owner.check()
            if share.batches:
                try:
                    planned = owner.plan(concat(share.batches))
                except QueueFull as full:
                    raise TransactionAborted(transaction.name, str(full)) from full
                if planned.batch is not None:
                    share.publication = planned
        return shares


def _stage(owner: PartitionOwner, share: _Share) -> Staged:
    publication = share.publication
    if publication is None:
        return stage(owner, planned=share.events)
    limits = owner.settings.limits
    batches = [batch for part in by_schema(publication, share.batches) for batch in within_limits(part, limits)]
    return stage_all(owner, batches, [*publication.events, *share.events])


def _one_engine(transaction: TransactionId, shares: dict[PartitionOwner, _Share]) -> Engine:
    engines = {id(owner.engine): owner.engine for owner in shares}
    if len(engines) > 1:
        problem = "topics in memory and durable topics cannot share a transaction"
        raise TransactionAborted(transaction.name, problem) from InvalidArgument("topic", problem)
    return next(iter(engines.values()))
