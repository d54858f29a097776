"""What a topic and its subscriptions are like right now, for people, scripts and the portal."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.delivery.config import SubscriptionConfig
from sealane.errors import SubscriptionNotFound
from sealane.node.dead_letters import REDRIVE_SUBSCRIPTION
from sealane.node.topic_config import TopicConfig
from sealane.node.topics import Topic


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SubscriptionDescription:
    name: str
    config: SubscriptionConfig
    depth: int
    """Messages that are not settled."""
    leased: int
    waiting: int
    """For a retry or a delay."""
    dying: int
    """Out of attempts, on their way to the dead letters."""
    consumers: int
    positions: dict[int, int]
    """By partition: everything below is settled."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    config: TopicConfig
    partitions: tuple[PartitionDescription, ...]
    subscriptions: tuple[SubscriptionDescription, ...]
    redrive: SubscriptionDescription | None = None
    """Of a dead-letter topic: what has not been driven back."""


def describe_topic(topic: Topic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(owner.key.partition, owner.core.start, owner.core.visible) for owner in topic.owners
    )
    names = sorted({name for owner in topic.owners for name in owner.core.subscriptions} | set(topic.groups))
    subscriptions = tuple(describe_subscription(topic, name) for name in names if not name.startswith("_"))
    redrive = describe_subscription(topic, REDRIVE_SUBSCRIPTION) if REDRIVE_SUBSCRIPTION in names else None
    return TopicDescription(topic.full_name, topic.config, partitions, subscriptions, redrive)


def describe_subscription(topic: Topic, name: str) -> SubscriptionDescription:
    readers = [(owner, owner.core.subscriptions[name]) for owner in topic.owners if name in owner.core.subscriptions]
    group = topic.groups.get(name)
    if not readers and group is None:
        raise SubscriptionNotFound(f"{topic.full_name}:{name}")
    return SubscriptionDescription(
        name,
        readers[0][1].config if readers else group.config if group else SubscriptionConfig(),
        depth=sum(reader.depth(owner.core.visible) for owner, reader in readers),
        leased=sum(len(reader.leases.outstanding) for _, reader in readers),
        waiting=sum(len(reader.parked.members) for _, reader in readers),
        dying=sum(len(dead.offsets) for _, reader in readers for dead in reader.dying),
        consumers=sum(1 for attachment in topic.attachments.values() if attachment.group.name == name),
        positions={owner.key.partition: reader.settled.floor for owner, reader in readers},
    )
