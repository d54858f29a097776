"""The registry of topics: creating, configuring, finding and deleting them, and owning their partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import msgspec

from sealane.delivery.subscription import Subscription
from sealane.engine import Engine, PartitionKey
from sealane.errors import AlreadyExists, SealaneError, TopicNotFound
from sealane.log import get_log
from sealane.message import OPEN_SYSTEM_TOPICS, check_name, split_topic
from sealane.node.locks import Locks
from sealane.node.measures import Measures
from sealane.node.owner import PartitionOwner
from sealane.node.read_ahead import ReadAhead
from sealane.node.settings import NodeSettings
from sealane.node.supervision import Supervisor
from sealane.node.surroundings import Surroundings
from sealane.node.topic_config import TopicConfig, changed_config, check_topic_config
from sealane.node.topics import Catalogue, Topic, TopicRecord

log = get_log("sealane.node")

T = TypeVar("T")


class TopicRegistry:
    """Every topic of a node, running. Topics in memory are in the catalogue too: they come back empty."""

    def __init__(
        self,
        engine: Engine,
        memory: Engine,
        surroundings: Surroundings,
        settings: NodeSettings,
        locks: Locks,
        bury: Callable[[PartitionOwner, Subscription], None],
        supervisor: Supervisor,
        measures: Measures,
    ) -> None:
        self.running: dict[str, Topic] = {}
        self._engine = engine
        self._memory = memory
        self._surroundings = surroundings
        self._settings = settings
        self._lock = locks
        self._bury = bury
        self._supervisor = supervisor
        self._measures = measures
        self._catalogue = Catalogue(engine)
        self._read_ahead = ReadAhead()
        self._finishing: set[asyncio.Task[Any]] = set()
        self._closed_domains: set[str] = set()
        self.deleted: list[Callable[[], Awaitable[None]]] = []
        """Called after a topic was deleted: what belonged to it goes too."""

    async def load(self) -> None:
        """Own what the catalogue lists."""
        for domain, name, record, version in await self._catalogue.topics():
            await self._start(domain, name, record, version)

    async def close(self) -> None:
        if self._finishing:
            await asyncio.wait(list(self._finishing))
        for topic in self.running.values():
            for owner in topic.owners:
                await owner.close()

    async def create(self, name: str, config: TopicConfig) -> Topic:
        """Make sure that the topic exists with this configuration."""
        check_topic_config(config)
        domain, bare = self._checked(name)
        return await self._whole(self._create_or_compare(domain, bare, config))

    async def _create_or_compare(self, domain: str, bare: str, config: TopicConfig) -> Topic:
        async with self._lock(f"{domain}/{bare}"):
            existing = self.running.get(f"{domain}/{bare}")
            if existing is None:
                return await self._create(domain, bare, config)
            if existing.config != config:
                raise AlreadyExists("topic", existing.full_name, _difference(existing.config, config))
            return existing

    async def configure(self, name: str, changes: Mapping[str, object]) -> Topic:
        return await self._whole(self._configure(self.get(name), changes))

    async def _configure(self, topic: Topic, changes: Mapping[str, object]) -> Topic:
        async with self._lock(topic.full_name):
            record = msgspec.structs.replace(topic.record, config=changed_config(topic.config, dict(changes)))
            topic.version = await self._catalogue.change_topic(topic, record)
            topic.record = record
            for owner in topic.owners:
                owner.configure(record.config)
            await self._add_partitions(topic)
            log.info("a topic was configured", topic=topic.full_name, **_told(record.config))
            return topic

    async def delete(self, name: str) -> None:
        """Delete the topic with all of its messages and subscriptions."""
        await self._whole(self._delete(self.get(name)))

    async def _delete(self, topic: Topic) -> None:
        async with self._lock(topic.full_name):
            await self._catalogue.remove_topic(topic)
            del self.running[topic.full_name]
            self._measures.forget_topic(topic.full_name)
            for attachment in list(topic.attachments.values()):
                attachment.consumer.closed(TopicNotFound(topic.full_name, "it was deleted"))
            owners, topic.owners = topic.owners, []
            for owner in owners:
                await owner.close()
                await owner.engine.drop(owner.key)
            log.info("a topic was deleted", topic=topic.full_name)
        for told in self.deleted:
            await told()

    @asynccontextmanager
    async def without(self, domain: str) -> AsyncIterator[int]:
        """Delete every topic of a domain, and let none be made there until the block ends. Gives their number."""
        self._closed_domains.add(domain)
        try:
            if self._finishing:
                # One that was begun before is deleted with the others.
                await asyncio.wait(list(self._finishing))
            topics = [topic for topic in self.running.values() if topic.domain == domain]
            for topic in topics:
                with suppress(TopicNotFound):
                    await self._whole(self._delete(topic))
            yield len(topics)
        finally:
            self._closed_domains.discard(domain)

    def get(self, name: str) -> Topic:
        full_name = "/".join(split_topic(name))
        found = self.running.get(full_name)
        if found is None:
            raise TopicNotFound(full_name, "create it first, or turn topics.auto_create on")
        return found

    def find(self, name: str) -> Topic | None:
        """The topic; None if it does not exist and using it will create it. Raises if neither can be."""
        found = self.running.get("/".join(split_topic(name)))
        if found is not None:
            return found
        if not self._settings.topics.auto_create:
            return self.get(name)
        self._checked(name)
        return None

    async def get_or_create(self, name: str) -> Topic:
        """The topic, created now if it does not exist and topics may be created by using them."""
        found = self.find(name)
        if found is not None:
            return found
        domain, bare = split_topic(name)
        defaults = self._settings.topics
        config = TopicConfig(
            partitions=defaults.partitions, sealed=defaults.sealed, retention_seconds=defaults.retention_seconds
        )
        return await self.ensure(domain, bare, config)

    def _checked(self, name: str) -> tuple[str, str]:
        domain, bare = split_topic(name)
        is_open = f"{domain}/{bare}" in OPEN_SYSTEM_TOPICS
        check_name("domain", domain, self._settings.limits, system=is_open)
        check_name("topic", bare, self._settings.limits, system=is_open)
        return domain, bare

    async def ensure(self, domain: str, name: str, config: TopicConfig) -> Topic:
        existing = self.running.get(f"{domain}/{name}")
        if existing is not None:
            return existing
        return await self._whole(self._find_or_create(domain, name, config))

    async def _find_or_create(self, domain: str, name: str, config: TopicConfig) -> Topic:
        async with self._lock(f"{domain}/{name}"):
            return self.running.get(f"{domain}/{name}") or await self._create(domain, name, config)

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish what was begun, even if the caller gives up: half of it would be in the way of the next attempt."""
        task = asyncio.get_running_loop().create_task(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._abandoned)
            raise

    def _abandoned(self, work: asyncio.Task[Any]) -> None:
        """The end of work whose caller has gone: what went wrong with it is not to be lost."""
        error = None if work.cancelled() else work.exception()
        if isinstance(error, SealaneError | OSError):
            log.warning("a change to a topic failed after its caller had gone", reason=str(error))
        elif error is not None:
            self._supervisor.crashed("topic change", error)

    async def _create(self, domain: str, name: str, config: TopicConfig) -> Topic:
        if domain in self._closed_domains:
            raise TopicNotFound(f"{domain}/{name}", "its domain is being destroyed; try again in a moment")
        incarnation = int.from_bytes(self._surroundings.entropy(4), "big") >> 1
        record = TopicRecord(config, incarnation)
        version = await self._catalogue.add_topic(domain, name, record)
        topic = await self._start(domain, name, record, version)
        log.info("a topic was created", topic=topic.full_name, **_told(config))
        return topic

    async def _start(self, domain: str, name: str, record: TopicRecord, version: int) -> Topic:
        topic = Topic(domain, name, record, version, self._engine if record.config.durable else self._memory)
        await self._add_partitions(topic)
        self.running[topic.full_name] = topic
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
                self._settings,
                self._surroundings.clock,
                self._bury,
                self._read_ahead,
                self._supervisor,
                self._measures,
            )
            await owner.load(sealed=topic.config.sealed)
            topic.owners.append(owner)
        known = {name: reader.config for owner in topic.owners for name, reader in owner.core.subscriptions.items()}
        for owner in topic.owners:
            for name, config in known.items():
                if name not in owner.core.subscriptions:
                    owner.note_journal([owner.core.subscribe(name, config, owner.core.start)])
        if topic.full_name in self.running:
            for owner in topic.owners:
                owner.start()
            for attachment in topic.attachments.values():
                for owner in topic.owners:
                    attachment.start_partition(owner)


def _told(config: TopicConfig) -> dict[str, object]:
    """A configuration as fields of the log."""
    return msgspec.to_builtins(config)


def _difference(has: TopicConfig, wanted: TopicConfig) -> str:
    names = [name for name in TopicConfig.__struct_fields__ if getattr(has, name) != getattr(wanted, name)]
    return "; ".join(f"{name} is {getattr(has, name)}, not {getattr(wanted, name)}" for name in names)
