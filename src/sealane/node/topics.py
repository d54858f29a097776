"""Topics: their catalogue in the engine's key space, and the running ones with their partitions and consumers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from sealane.engine import Engine
from sealane.errors import AlreadyExists, TopicNotFound, VersionMismatch
from sealane.node.consumers import Group
from sealane.node.owner import PartitionOwner
from sealane.node.schemas.checking import TopicCheck
from sealane.node.topic_config import TopicConfig

if TYPE_CHECKING:
    from sealane.node.attachment import Attachment


class TopicRecord(msgspec.Struct, frozen=True):
    """A topic as the catalogue holds it."""

    config: TopicConfig
    incarnation: int
    """Tells this topic from an earlier one of the same name."""


@dataclass(slots=True, eq=False)
class Topic:
    """A running topic."""

    domain: str
    name: str
    record: TopicRecord
    version: int
    engine: Engine
    owners: list[PartitionOwner] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    attachments: dict[str, Attachment] = field(default_factory=dict)
    """By consumer."""
    schema: TopicCheck | None = None
    """What checks that payloads fit the topic's schema, where it has one."""
    next_keyless: int = 0
    """Batches without keys go round the partitions."""

    @property
    def full_name(self) -> str:
        return f"{self.domain}/{self.name}"

    @property
    def is_system(self) -> bool:
        """Whether it is the system's own: it is not listed among the others."""
        return self.name.startswith("_") or self.domain.startswith("_")

    @property
    def config(self) -> TopicConfig:
        return self.record.config

    def check(self) -> None:
        """Raise if the topic was deleted since it was looked up."""
        if not self.owners:
            raise TopicNotFound(self.full_name, "it was deleted in this moment")

    def keyless_partition(self) -> int:
        self.next_keyless = (self.next_keyless + 1) % len(self.owners)
        return self.next_keyless


class Catalogue:
    """What topics there are, under compare-and-set."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def topics(self) -> list[tuple[str, str, TopicRecord, int]]:
        found = []
        for key, value in await self._engine.scan("topic/"):
            _, domain, name = key.split("/")
            found.append((domain, name, msgspec.json.decode(value.data, type=TopicRecord), value.version))
        return found

    async def add_topic(self, domain: str, name: str, record: TopicRecord) -> int:
        try:
            return await self._engine.put(f"topic/{domain}/{name}", msgspec.json.encode(record), expected=0)
        except VersionMismatch:
            raise AlreadyExists("topic", f"{domain}/{name}") from None

    async def change_topic(self, topic: Topic, record: TopicRecord) -> int:
        key = f"topic/{topic.domain}/{topic.name}"
        return await self._engine.put(key, msgspec.json.encode(record), expected=topic.version)

    async def remove_topic(self, topic: Topic) -> None:
        try:
            await self._engine.delete(f"topic/{topic.domain}/{topic.name}", expected=topic.version)
        except VersionMismatch:
            raise TopicNotFound(topic.full_name) from None
