"""A node: the commands that doors, the in-process client and the command line give.

Names arrive as users write them (`orders`, `shop/orders`); everything is validated here, once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from pyroaring import BitMap64

from sealane._version import __version__
from sealane.delivery.config import SubscriptionConfig, check_config
from sealane.delivery.filters import compile_filter
from sealane.engine import BacksUp, BackupReport, Engine, Packed, ReadsPacked, Stored
from sealane.engine.memory import MemoryEngine
from sealane.errors import SchemaMismatch, StorageError, TopicNotFound
from sealane.log import get_log
from sealane.message import Batch, check_name, split_topic
from sealane.message.names import DEFAULT_DOMAIN
from sealane.node import subscribing
from sealane.node.advancing import advance
from sealane.node.attachment import Attachment
from sealane.node.audit_log import AUDIT_LOG, AuditLog
from sealane.node.auditing import Audit
from sealane.node.burial import Undertaker
from sealane.node.certificate_watch import CertificateWatch
from sealane.node.consumers import Consumer, Group
from sealane.node.dead_letters import REDRIVE_SUBSCRIPTION, dead_topic_name
from sealane.node.entrances import Entrances
from sealane.node.exchanges import Exchanges
from sealane.node.grant_changes import cut_off_forbidden
from sealane.node.identity import Identity
from sealane.node.locks import Locks
from sealane.node.logs import partition_to_read
from sealane.node.measures import Measures
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import Publishing, admit, spread, start_publish
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveOrder, RedriveReport, RedriveWish, redrive
from sealane.node.registry import TopicRegistry
from sealane.node.retention import Retention
from sealane.node.schemas.registry import Schemas
from sealane.node.settings import NodeSettings
from sealane.node.shredding import Shredding
from sealane.node.staging import Staging
from sealane.node.starts import Start, check_start, offset_of
from sealane.node.supervision import Supervisor
from sealane.node.surroundings import Surroundings
from sealane.node.topic_config import TopicConfig
from sealane.node.topics import Topic
from sealane.node.transactions import (
    COORDINATOR,
    TransactionAck,
    TransactionId,
    Transactions,
    check_transaction_id,
    coordinator_of,
)
from sealane.node.webhooks.webhooks import Webhooks

log = get_log("sealane.node")

T = TypeVar("T")


class Node:
    """Made by `Node.open`, ended by `close`; all methods run on one event loop."""

    def __init__(self, engine: Engine, surroundings: Surroundings, settings: NodeSettings) -> None:
        self.engine = engine
        self.memory = engine if isinstance(engine, MemoryEngine) else MemoryEngine(surroundings.clock)
        self.surroundings = surroundings
        self.settings = settings
        self.started_us = surroundings.clock()
        self.supervisor = Supervisor()
        """Hears of every crash; `await node.supervisor.failed()` returns when the node has to stop."""
        self.measures = Measures()
        self.exchanges = Exchanges(engine, settings.limits)
        self.identity = Identity(engine, surroundings, settings.security)
        self.entrances = Entrances(settings.security.quotas, self.identity.quotas, self.measures.crowded)
        self._lock = Locks()
        self._transactions = Transactions()
        self._undertaker = Undertaker(self._dead_topic, self._topic_of, self.supervisor)
        self._registry = TopicRegistry(
            engine,
            self.memory,
            surroundings,
            settings,
            self._lock,
            self._undertaker.bury,
            self.supervisor,
            self.measures,
        )
        self.staging = Staging(
            self._registry, self._transactions, engine, settings.staging, surroundings.clock, self.supervisor
        )
        self._retention = Retention(self)
        self.shredding = Shredding(self._registry, engine)
        self.schemas = Schemas(self.identity.vault, self._registry.running)
        self._registry.deleted.append(self.schemas.forget_orphans)
        self.webhooks = Webhooks(self.identity, self._registry.running, settings.webhooks)
        self._registry.deleted.append(self.webhooks.forget_orphans)
        self.certificates = CertificateWatch(
            self.identity.authorities, settings.security.certificates.renew_days, surroundings.clock, self.supervisor
        )
        audit_log = AuditLog(self._registry, self.identity.vault, surroundings)
        self.audit = Audit(audit_log, surroundings.clock, self.supervisor)

    @classmethod
    async def open(
        cls,
        engine: Engine,
        surroundings: Surroundings,
        settings: NodeSettings | None = None,
        *,
        audited: bool = False,
    ) -> Node:
        """A node that serves what the engine holds: when this returns, everything is loaded.

        `audited`: whether it keeps an audit log where `security.audit.enabled` leaves that open and there is none yet.
        """
        node = cls(engine, surroundings, settings or NodeSettings())
        began = node.measures.now()
        engine.watch.crashed = node.supervisor.crashed
        engine.watch.failed = node.supervisor.stop
        engine.watch.committed = node.measures.group_committed
        await node._registry.load()
        await node.shredding.resume()
        await node.exchanges.load()
        await node.identity.load()
        node.identity.grants.changed.append(lambda: cut_off_forbidden(node))
        await node.schemas.load()
        await node.webhooks.load()
        wanted = node.settings.security.audit
        if wanted.enabled or (wanted.enabled is None and (audited or AUDIT_LOG in node.topics)):
            await node.audit.open(wanted.retention_seconds)
        node.staging.resume()
        node._retention.start()
        node.certificates.start()
        duration_ms = round(1e3 * (node.measures.now() - began))
        log.info("the node is open", topics=len(node.topics), version=__version__, duration_ms=duration_ms)
        return node

    async def close(self) -> None:
        """Stop serving, journal what waits, close the engines."""
        await self._retention.close()
        await self.staging.close()
        await self.schemas.close()
        await self.certificates.close()
        await self._undertaker.close()
        await self.audit.close()
        await self._registry.close()
        await self.supervisor.finish()
        await self.engine.close()
        await self.memory.close()
        log.info("the node is closed")

    # --- topics -------------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The running topics by full name."""
        return self._registry.running

    def topic(self, name: str) -> Topic:
        """Raises `TopicNotFound`."""
        return self._registry.get(name)

    async def ensure_topic(self, name: str) -> Topic:
        """The topic, made now if it does not exist and topics may be made by using them."""
        return await self._registry.get_or_create(name)

    async def create_topic(self, name: str, config: TopicConfig) -> Topic:
        """Make sure that the topic exists with this configuration; `AlreadyExists` if it has another one."""
        return await self._registry.create(name, config)

    async def configure_topic(self, name: str, changes: Mapping[str, object]) -> Topic:
        return await self._registry.configure(name, changes)

    async def delete_topic(self, name: str) -> None:
        """Delete the topic with all of its messages and subscriptions; its consumers are told."""
        await self._registry.delete(name)

    async def _dead_topic(self, name: str, origin: Topic) -> Topic:
        config = msgspec.structs.replace(origin.config, messages_max=None, when_full="refuse")
        topic = await self._registry.ensure(origin.domain, name, config)
        await self.subscribe(topic, REDRIVE_SUBSCRIPTION, SubscriptionConfig(), "earliest")
        return topic

    def _topic_of(self, owner: PartitionOwner) -> Topic:
        return self.topics[f"{owner.key.domain}/{owner.key.topic}"]

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def publish(self, name: str, batch: Batch) -> Receipts:
        """Returns when every message of the batch is durable. A batch over several partitions is one commit."""
        publishing = start_publish([(await self._registry.get_or_create(name), batch)])
        await publishing.durable()
        return publishing.receipts[0]

    def start_publish(self, name: str, batch: Batch) -> Publishing | None:
        """The same without a wait, for a topic that exists; None if it does not."""
        topic = self.topics.get("/".join(split_topic(name)))
        return None if topic is None else start_publish([(topic, batch)])

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> dict[str, Receipts]:
        """Publish to every topic that the routing key leads to, in one commit. Raises `Unroutable` if there is none."""
        topics = [await self._registry.get_or_create(name) for name in self.exchanges.route(exchange, routing_key)]
        publishing = start_publish([(topic, batch) for topic in topics])
        await publishing.durable()
        return {topic.full_name: receipts for topic, receipts in zip(topics, publishing.receipts, strict=True)}

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Attachment, int, int, BitMap64]],
        *,
        domain: str = DEFAULT_DOMAIN,
    ) -> bool:
        """Publish and acknowledge together, once under this id. False: it was done before, and nothing changed now.

        Acks are (attachment, partition, lease, offsets). `domain` is whose id it is: another one has its own.
        """
        check_transaction_id(transaction)
        topics = [(await self._registry.get_or_create(name), batch) for name, batch in publishes]
        try:
            topics = [(topic, admit(topic, batch)) for topic, batch in topics]
        except SchemaMismatch:
            if await self.is_transaction_done(transaction, domain=domain):
                return False  # It did fit when that was done.
            raise
        settled = [
            TransactionAck(*attachment.find(partition), lease, offsets)
            for attachment, partition, lease, offsets in acks
        ]
        durable = all(topic.config.durable for topic, _ in topics) and all(
            ack.owner.engine is self.engine for ack in settled
        )
        coordinator = await coordinator_of(self._registry, durable=durable)
        shares = [(owner, part) for topic, batch in topics for owner, _, part in spread(topic, batch)]
        return await self._transactions.commit(coordinator, TransactionId(domain, transaction), shares, settled)

    async def is_transaction_done(self, transaction: str, *, domain: str = DEFAULT_DOMAIN) -> bool:
        """Whether one under this id has been committed: what a repeated request asks whose leases are over."""
        for name in (COORDINATOR, f"{COORDINATOR}.memory"):
            coordinator = self.topics.get(f"default/{name}")
            if coordinator and await self._transactions.is_done(
                coordinator.owners[0], TransactionId(domain, transaction)
            ):
                return True
        return False

    # --- subscriptions ------------------------------------------------------------------------------------------------

    async def subscribe(
        self, topic: Topic, name: str, config: SubscriptionConfig, start: Start, *, keep_retry: bool = False
    ) -> Group:
        """Make sure that the subscription exists as configured: durable on return. `start` is for a new one.

        With `keep_retry` an existing one keeps its retries, whatever `config` says of them.
        """
        async with self._lock(f"{topic.full_name}:{name}"):
            return await subscribing.subscribe(topic, name, config, start, keep_retry=keep_retry)

    async def declare_subscription(
        self, name: str, subscription: str, config: SubscriptionConfig, start: Start, *, keep_retry: bool = False
    ) -> Group:
        """The same from what a user says, which is checked; the topic is made if it is new."""
        check_config(config)
        check_start(start)
        if config.filter is not None:
            compile_filter(config.filter)
        check_name("subscription", subscription, self.settings.limits, system=subscription == REDRIVE_SUBSCRIPTION)
        topic = await self._registry.get_or_create(name)
        return await self.subscribe(topic, subscription, config, start, keep_retry=keep_retry)

    async def attach(
        self,
        name: str,
        subscription: str,
        config: SubscriptionConfig,
        start: Start,
        consumer: Consumer,
        *,
        keep_retry: bool = False,
    ) -> Attachment:
        """Let a consumer take part in a subscription, which is created if it is new; see `subscribe`."""
        group = await self.declare_subscription(name, subscription, config, start, keep_retry=keep_retry)
        topic = self.topic(name)
        topic.check()
        member = None
        if config.mode == "broadcast":
            member = f"{subscription}@{consumer.id}"
            group = Group(subscription, config)
            floors = {owner: await offset_of(start, owner) for owner in topic.owners}
            topic.check()
            for owner, floor in floors.items():
                owner.core.join(member, config, floor)
        group.consumers[consumer.id] = consumer
        tell = log.info if consumer.bound else log.debug  # Whoever pulls comes and leaves each time.
        tell("a consumer joined", topic=topic.full_name, subscription=subscription, consumer=consumer.id)
        attachment = topic.attachments[consumer.id] = Attachment(topic, group, consumer, member)
        for owner in topic.owners:
            attachment.start_partition(owner)
        return attachment

    async def unsubscribe(self, name: str, subscription: str) -> None:
        """Delete a subscription with its position; its consumers are told."""
        topic = self.topic(name)
        await subscribing.unsubscribe(topic, subscription)
        self.measures.topic(topic.full_name).subscriptions.pop(subscription, None)
        await self.webhooks.forget_orphans()
        log.info("a subscription was deleted", topic=topic.full_name, subscription=subscription)

    async def seek(self, name: str, subscription: str, start: Start) -> dict[int, int]:
        """Let a subscription begin again from there. Returns its new offset by partition."""
        check_start(start)
        return await subscribing.seek(self.topic(name), subscription, start)

    async def advance(self, name: str, subscription: str, positions: Mapping[int, int]) -> None:
        """Settle everything below these offsets, by partition; a subscription that is new is made, and begins there.

        Durable on return. It only ever goes forward; partitions that are not named stay where they are.
        """
        check_name("subscription", subscription, self.settings.limits)
        topic = self.topic(name)
        async with self._lock(f"{topic.full_name}:{subscription}"):
            topic.check()
            await advance(topic, subscription, positions)

    async def redrive(
        self,
        name: str,
        subscription: str,
        wish: RedriveWish,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        """Send a subscription's dead letters back to it; see `sealane.node.redrive`."""
        topic = self.topic(name)
        dead_name = f"{topic.domain}/{dead_topic_name(topic.name, subscription)}"
        dead = self.topics.get(dead_name)
        if dead is None:
            raise TopicNotFound(dead_name, f"subscription {subscription!r} of {topic.full_name!r} has no dead letters")
        # It may be missing if the node ended between making the topic and this.
        await self.subscribe(dead, REDRIVE_SUBSCRIPTION, SubscriptionConfig(), "earliest")
        order = RedriveOrder(topic, dead, subscription, wish, progress)
        async with self._lock(f"{dead_name}:{REDRIVE_SUBSCRIPTION}:redrive"):
            report = await redrive(order)
        if not wish.dry_run:
            log.info("dead letters were driven back", topic=dead_name, count=report.messages)
        return report

    # --- backup -------------------------------------------------------------------------------------------------------

    async def backup(
        self, target: Path, *, include_key: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> BackupReport:
        """Copy all that is durable to a new directory while everything goes on; see `BacksUp.backup`."""
        if not isinstance(self.engine, BacksUp):
            raise StorageError(
                f"backup to {str(target)!r} refused: this node keeps its messages in memory; start it with a data "
                "directory to have something to back up"
            )
        return await self.engine.backup(target, include_key=include_key, progress=progress)

    # --- browsing -----------------------------------------------------------------------------------------------------

    async def browse(
        self,
        name: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> list[Stored]:
        """Stored batches as they are, without leasing anything; see `RawLogs.browse`."""
        owner = partition_to_read(self.topic(name), partition, incarnation)
        return await owner.engine.read(owner.key, offset, bytes_max=bytes_max, stop=stop)

    async def browse_packed(
        self,
        name: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> Sequence[Stored | Packed]:
        """The same for who unpacks what is stored compressed: the node need not, and sends less."""
        owner = partition_to_read(self.topic(name), partition, incarnation)
        engine = owner.engine
        if isinstance(engine, ReadsPacked):
            return await engine.read_packed(owner.key, offset, bytes_max=bytes_max, stop=stop)
        return await engine.read(owner.key, offset, bytes_max=bytes_max, stop=stop)
