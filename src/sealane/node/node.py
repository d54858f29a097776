"""A node: the commands that doors, the in-process client and the command line give.

Names arrive as users write them (`orders`, `shop/orders`); everything is validated here, once, for all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig, check_config
from sealane.delivery.events import Configured, Sought, Subscribed, Unsubscribed
from sealane.delivery.filters import compile_filter
from sealane.engine import Engine, PartitionKey, Stored
from sealane.engine.memory import MemoryEngine
from sealane.errors import AlreadyExists, InvalidArgument, ModeConflict, SubscriptionNotFound, TopicNotFound
from sealane.message import Batch, Stamp, check_name, split_topic
from sealane.node.attachment import Attachment
from sealane.node.burial import Undertaker
from sealane.node.commits import commit_together, stage
from sealane.node.consumers import Consumer, Group
from sealane.node.dead_letters import REDRIVE_SUBSCRIPTION, dead_topic_name
from sealane.node.exchanges import Exchanges
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import Publishing, spread, start_publish
from sealane.node.read_ahead import ReadAhead
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveOrder, RedriveReport, redrive
from sealane.node.retention import Retention
from sealane.node.settings import NodeSettings
from sealane.node.starts import Start, check_start, offset_of
from sealane.node.topic_config import TopicConfig, changed_config, check_topic_config
from sealane.node.topics import Catalogue, Topic, TopicRecord
from sealane.node.transactions import COORDINATOR, TransactionAck, Transactions

log = logging.getLogger("sealane.node")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node may not make up itself: the time in µs since 1970, and randomness."""

    clock: Callable[[], int]
    entropy: Callable[[int], bytes]

    def stamp(self) -> Stamp:
        return Stamp(self.clock(), self.entropy(16))


class Node:
    """Made by `Node.open`, ended by `close`; all methods run on one event loop."""

    def __init__(self, engine: Engine, surroundings: Surroundings, settings: NodeSettings) -> None:
        self.engine = engine
        self.memory = engine if isinstance(engine, MemoryEngine) else MemoryEngine(surroundings.clock)
        self.surroundings = surroundings
        self.settings = settings
        self.exchanges = Exchanges(engine, settings.limits)
        self.topics: dict[str, Topic] = {}
        self._catalogue = Catalogue(engine)
        self._transactions = Transactions()
        self._undertaker = Undertaker(self._dead_topic, self._topic_of)
        self._retention = Retention(self)
        self._read_ahead = ReadAhead()
        self._creating: dict[str, asyncio.Lock] = {}
        self._finishing: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, engine: Engine, surroundings: Surroundings, settings: NodeSettings | None = None) -> Node:
        """A node that serves what the engine holds: when this returns, everything is loaded."""
        node = cls(engine, surroundings, settings or NodeSettings())
        for domain, name, record, version in await node._catalogue.topics():
            await node._start(domain, name, record, version)
        await node.exchanges.load()
        node._retention.start()
        return node

    async def close(self) -> None:
        """Stop serving, journal what waits, close the engines."""
        await self._retention.close()
        await self._undertaker.close()
        if self._finishing:
            await asyncio.wait(list(self._finishing))
        for topic in self.topics.values():
            for owner in topic.owners:
                await owner.close()
        await self.engine.close()
        await self.memory.close()

    # --- topics -------------------------------------------------------------------------------------------------------

    async def create_topic(self, name: str, config: TopicConfig) -> Topic:
        """Make sure that the topic exists with this configuration."""
        check_topic_config(config)
        domain, bare = self._checked(name)
        return await self._whole(self._create_or_compare(domain, bare, config))

    async def _create_or_compare(self, domain: str, bare: str, config: TopicConfig) -> Topic:
        async with self._lock(f"{domain}/{bare}"):
            existing = self.topics.get(f"{domain}/{bare}")
            if existing is None:
                return await self._create(domain, bare, config)
            if existing.config != config:
                raise AlreadyExists("topic", existing.full_name, _difference(existing.config, config))
            return existing

    async def configure_topic(self, name: str, changes: Mapping[str, object]) -> Topic:
        return await self._whole(self._configure(self.topic(name), changes))

    async def _configure(self, topic: Topic, changes: Mapping[str, object]) -> Topic:
        async with self._lock(topic.full_name):
            record = msgspec.structs.replace(topic.record, config=changed_config(topic.config, dict(changes)))
            topic.version = await self._catalogue.change_topic(topic, record)
            topic.record = record
            for owner in topic.owners:
                owner.configure(record.config)
            await self._add_partitions(topic)
            return topic

    async def delete_topic(self, name: str) -> None:
        """Delete the topic with all of its messages and subscriptions."""
        await self._whole(self._delete(self.topic(name)))

    async def _delete(self, topic: Topic) -> None:
        async with self._lock(topic.full_name):
            await self._catalogue.remove_topic(topic)
            del self.topics[topic.full_name]
            for attachment in list(topic.attachments.values()):
                attachment.consumer.closed(TopicNotFound(topic.full_name, "it was deleted"))
            owners, topic.owners = topic.owners, []
            for owner in owners:
                await owner.close()
                await owner.engine.drop(owner.key)

    def topic(self, name: str) -> Topic:
        full_name = "/".join(split_topic(name))
        found = self.topics.get(full_name)
        if found is None:
            raise TopicNotFound(full_name, "create it first, or turn topics.auto_create on")
        return found

    async def topic_for_use(self, name: str) -> Topic:
        """The topic, created now if it does not exist and topics may be created by using them."""
        domain, bare = split_topic(name)
        found = self.topics.get(f"{domain}/{bare}")
        if found is not None:
            return found
        if not self.settings.topics.auto_create:
            return self.topic(name)
        domain, bare = self._checked(name)
        defaults = self.settings.topics
        config = TopicConfig(
            partitions=defaults.partitions, sealed=defaults.sealed, retention_seconds=defaults.retention_seconds
        )
        return await self._ensure(domain, bare, config)

    def _checked(self, name: str) -> tuple[str, str]:
        domain, bare = split_topic(name)
        check_name("domain", domain, self.settings.limits)
        check_name("topic", bare, self.settings.limits)
        return domain, bare

    async def _ensure(self, domain: str, name: str, config: TopicConfig) -> Topic:
        existing = self.topics.get(f"{domain}/{name}")
        if existing is not None:
            return existing
        return await self._whole(self._find_or_create(domain, name, config))

    async def _find_or_create(self, domain: str, name: str, config: TopicConfig) -> Topic:
        async with self._lock(f"{domain}/{name}"):
            return self.topics.get(f"{domain}/{name}") or await self._create(domain, name, config)

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish what was begun, even if the caller gives up: half of it would be in the way of the next attempt."""
        task = asyncio.get_running_loop().create_task(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)
        return await asyncio.shield(task)

    async def _create(self, domain: str, name: str, config: TopicConfig) -> Topic:
        incarnation = int.from_bytes(self.surroundings.entropy(4), "big") >> 1
        record = TopicRecord(config, incarnation)
        version = await self._catalogue.add_topic(domain, name, record)
        return await self._start(domain, name, record, version)

    async def _start(self, domain: str, name: str, record: TopicRecord, version: int) -> Topic:
        topic = Topic(domain, name, record, version, self.engine if record.config.durable else self.memory)
        await self._add_partitions(topic)
        self.topics[topic.full_name] = topic
        for owner in topic.owners:
            owner.start()
        return topic

    async def _add_partitions(self, topic: Topic) -> None:
        """Own the partitions that the topic should have, each with all of the topic's subscriptions."""
        for partition in range(len(topic.owners), topic.config.partitions):
            key = PartitionKey(topic.domain, topic.name, topic.record.incarnation, partition)
            owner = PartitionOwner(
                key,
                topic.engine,
                topic.config,
                self.settings,
                self.surroundings.clock,
                self._undertaker.bury,
                self._read_ahead,
            )
            await owner.load(sealed=topic.config.sealed)
            topic.owners.append(owner)
        known = {name: reader.config for owner in topic.owners for name, reader in owner.core.subscriptions.items()}
        for owner in topic.owners:
            for name, config in known.items():
                if name not in owner.core.subscriptions:
                    owner.note_journal([owner.core.subscribe(name, config, owner.core.start)])
        if topic.full_name in self.topics:
            for owner in topic.owners:
                owner.start()
            for attachment in topic.attachments.values():
                for owner in topic.owners:
                    attachment.start_partition(owner)

    async def _dead_topic(self, name: str, origin: Topic) -> Topic:
        config = msgspec.structs.replace(origin.config, messages_max=None, when_full="refuse")
        topic = await self._ensure(origin.domain, name, config)
        await self.subscribe(topic, REDRIVE_SUBSCRIPTION, SubscriptionConfig(), "earliest")
        return topic

    def _topic_of(self, owner: PartitionOwner) -> Topic:
        return self.topics[f"{owner.key.domain}/{owner.key.topic}"]

    def _lock(self, full_name: str) -> asyncio.Lock:
        return self._creating.setdefault(full_name, asyncio.Lock())

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def publish(self, name: str, batch: Batch) -> Receipts:
        """Returns when every message of the batch is durable. A batch over several partitions is one commit."""
        publishing = start_publish([(await self.topic_for_use(name), batch)])
        await publishing.durable()
        return publishing.receipts[0]

    def start_publish(self, name: str, batch: Batch) -> Publishing | None:
        """The same without a wait, for a topic that exists; None if it does not."""
        topic = self.topics.get("/".join(split_topic(name)))
        return None if topic is None else start_publish([(topic, batch)])

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> dict[str, Receipts]:
        """Publish to every topic that the routing key leads to, in one commit. Raises `Unroutable` if there is none."""
        topics = [await self.topic_for_use(name) for name in self.exchanges.route(exchange, routing_key)]
        publishing = start_publish([(topic, batch) for topic in topics])
        await publishing.durable()
        return {topic.full_name: receipts for topic, receipts in zip(topics, publishing.receipts, strict=True)}

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Attachment, int, int, BitMap64]],
    ) -> bool:
        """Publish and acknowledge together, once under this id. False: it was done before, and nothing changed now.

        Acks are (attachment, partition, lease, offsets).
        """
        if not transaction or len(transaction) > TRANSACTION_ID_CHARS_MAX:
            raise InvalidArgument("transaction", f"an id has 1 to {TRANSACTION_ID_CHARS_MAX} characters")
        topics = [(await self.topic_for_use(name), batch) for name, batch in publishes]
        settled = [
            TransactionAck(*attachment.find(partition), lease, offsets)
            for attachment, partition, lease, offsets in acks
        ]
        durable = all(topic.config.durable for topic, _ in topics) and all(
            ack.owner.engine is self.engine for ack in settled
        )
        config = TopicConfig(durable=durable, retention_seconds=0)
        coordinator = await self._ensure("default", COORDINATOR if durable else f"{COORDINATOR}.memory", config)
        shares = [(owner, part) for topic, batch in topics for owner, _, part in spread(topic, batch)]
        return await self._transactions.commit(coordinator.owners[0], transaction, shares, settled)

    # --- subscriptions ------------------------------------------------------------------------------------------------

    async def subscribe(
        self, topic: Topic, name: str, config: SubscriptionConfig, start: Start, *, keep_retry: bool = False
    ) -> Group:
        """Make sure that the subscription exists as configured: durable on return. `start` is for a new one.

        With `keep_retry` an existing one keeps its retries, whatever `config` says of them.
        """
        async with self._lock(f"{topic.full_name}:{name}"):
            group = topic.groups.get(name)
            if group is None:
                existing = topic.owners[0].core.subscriptions.get(name)
                group = topic.groups[name] = Group(name, existing.config if existing else config)
            if keep_retry:
                config = msgspec.structs.replace(config, retry=group.config.retry)
            if config.mode != group.config.mode:
                raise ModeConflict(name, f"its mode is {group.config.mode}, not {config.mode}")
            missing = [owner for owner in topic.owners if name not in owner.core.subscriptions]
            if missing and config.mode != "broadcast":
                floors = [await offset_of(start, owner) for owner in missing]
                events = [Subscribed(name, config, floor) for floor in floors]
                shares = [stage(owner, planned=[event]) for owner, event in zip(missing, events, strict=True)]
                await asyncio.shield(commit_together(topic.engine, shares))
            if config != group.config:
                await self._reconfigure(topic, group, config)
            return group

    async def _reconfigure(self, topic: Topic, group: Group, config: SubscriptionConfig) -> None:
        if config.filter != group.config.filter:
            wanted, has = config.filter, group.config.filter
            raise ModeConflict(group.name, f"its filter is {has!r}, not {wanted!r}; delete it or use another name")
        group.config = config
        if config.mode != "broadcast":
            shares = [stage(owner, planned=[Configured(group.name, config)]) for owner in topic.owners]
            await asyncio.shield(commit_together(topic.engine, shares))

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
        check_config(config)
        check_start(start)
        if config.filter is not None:
            compile_filter(config.filter)
        check_name("subscription", subscription, self.settings.limits, system=subscription == REDRIVE_SUBSCRIPTION)
        topic = await self.topic_for_use(name)
        group = await self.subscribe(topic, subscription, config, start, keep_retry=keep_retry)
        member = None
        if config.mode == "broadcast":
            member = f"{subscription}@{consumer.id}"
            group = Group(subscription, config)
            floors = {owner: await offset_of(start, owner) for owner in topic.owners}
            for owner, floor in floors.items():
                owner.core.join(member, config, floor)
        group.consumers[consumer.id] = consumer
        attachment = topic.attachments[consumer.id] = Attachment(topic, group, consumer, member)
        for owner in topic.owners:
            attachment.start_partition(owner)
        return attachment

    async def unsubscribe(self, name: str, subscription: str) -> None:
        """Delete a subscription with its position; its consumers are told."""
        topic = self.topic(name)
        owners = [owner for owner in topic.owners if subscription in owner.core.subscriptions]
        if not owners and subscription not in topic.groups:
            raise SubscriptionNotFound(f"{topic.full_name}:{subscription}")
        for attachment in [held for held in topic.attachments.values() if held.group.name == subscription]:
            attachment.consumer.closed(SubscriptionNotFound(f"{topic.full_name}:{subscription}", "it was deleted"))
            await attachment.detach()
        topic.groups.pop(subscription, None)
        if owners:
            shares = [stage(owner, planned=[Unsubscribed(subscription)]) for owner in owners]
            await asyncio.shield(commit_together(topic.engine, shares))

    async def seek(self, name: str, subscription: str, start: Start) -> dict[int, int]:
        """Let a subscription begin again from there. Returns its new offset by partition."""
        check_start(start)
        topic = self.topic(name)
        offsets: dict[int, int] = {}
        shares = []
        for owner in topic.owners:
            owner.core.subscription(subscription)
            offsets[owner.key.partition] = await offset_of(start, owner)
        for owner in topic.owners:
            owner.revoke_all(subscription)
            offset = offsets[owner.key.partition]
            shares.append(stage(owner, planned=[Sought(subscription, offset, owner.clock())]))
        await asyncio.shield(commit_together(topic.engine, shares))
        return offsets

    async def redrive(
        self,
        name: str,
        subscription: str,
        *,
        matching: str | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        messages_max: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        """Send a subscription's dead letters back to it; see `sealane.node.redrive`."""
        topic = self.topic(name)
        dead_name = f"{topic.domain}/{dead_topic_name(topic.name, subscription)}"
        dead = self.topics.get(dead_name)
        if dead is None:
            raise TopicNotFound(dead_name, f"subscription {subscription!r} of {topic.full_name!r} has no dead letters")
        order = RedriveOrder(topic, dead, subscription, matching, dry_run, rate, messages_max, progress)
        async with self._lock(f"{dead_name}:{REDRIVE_SUBSCRIPTION}:redrive"):
            return await redrive(order)

    # --- browsing -----------------------------------------------------------------------------------------------------

    async def browse(self, name: str, partition: int, offset: int, *, bytes_max: int = 1 << 20) -> list[Stored]:
        """Stored batches as they are, without leasing anything."""
        topic = self.topic(name)
        if not 0 <= partition < len(topic.owners):
            problem = f"{partition} is not in 0 to {len(topic.owners) - 1}, the partitions of {topic.full_name!r}"
            raise InvalidArgument("partition", problem)
        owner = topic.owners[partition]
        return await owner.engine.read(owner.key, offset, bytes_max=bytes_max)


TRANSACTION_ID_CHARS_MAX = 256
"""An id is remembered by its digest; the limit is for logs and errors."""


def _difference(has: TopicConfig, wanted: TopicConfig) -> str:
    names = [name for name in TopicConfig.__struct_fields__ if getattr(has, name) != getattr(wanted, name)]
    return "; ".join(f"{name} is {getattr(has, name)}, not {getattr(wanted, name)}" for name in names)
