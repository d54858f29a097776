"""What there is to read of topics: for readers that keep their own positions, as Spark does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sealane.errors import TopicNotFound
from sealane.node.starts import offset_of
from sealane.node.topics import Topic


class PartitionLog(msgspec.Struct, frozen=True, array_like=True):
    partition: int
    start: int
    """The first offset that is still there."""
    end: int
    """One past the last message that is durable."""
    at: int | None = None
    """Where the messages begin that are not older than the moment that was asked for."""


class TopicLog(msgspec.Struct, frozen=True, array_like=True):
    name: str
    """In full: `domain/name`."""
    incarnation: int
    """Another number: the topic was deleted and made again, and offsets mean other messages."""
    partitions: list[PartitionLog]


def check_incarnation(topic: Topic, wanted: int | None) -> None:
    """Raise `TopicNotFound` if a reader means an earlier topic of this name."""
    if wanted is not None and wanted != topic.record.incarnation:
        now = topic.record.incarnation
        raise TopicNotFound(
            topic.full_name, f"it was deleted and made again: {wanted} was asked for, this one is {now}"
        )


async def describe_logs(topics: Sequence[Topic], at: datetime | None) -> list[TopicLog]:
    """Of each topic, as it is now."""
    return [await _describe(topic, at) for topic in topics]


async def _describe(topic: Topic, at: datetime | None) -> TopicLog:
    partitions = [
        PartitionLog(
            owner.key.partition,
            owner.core.start,
            owner.core.visible,
            None if at is None else await offset_of(at, owner),
        )
        for owner in topic.owners
    ]
    return TopicLog(topic.full_name, topic.record.incarnation, partitions)
