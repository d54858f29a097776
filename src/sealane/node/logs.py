"""What there is to read of topics: for readers that keep their own positions, as Spark does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sealane.errors import InvalidArgument, TopicNotFound
from sealane.node.owner import PartitionOwner
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
    journal_start: int = 0
    """The first journal entry that is still there."""
    journal_end: int = 0
    """One past the last journal entry that is durable."""


class TopicLog(msgspec.Struct, frozen=True, array_like=True):
    name: str
    """In full: `domain/name`."""
    incarnation: int
    """Another number: the topic was deleted and made again, and offsets mean other messages."""
    partitions: list[PartitionLog]


def partition_to_read(topic: Topic, partition: int, incarnation: int | None) -> PartitionOwner:
    """Raises `TopicNotFound` if the reader means an earlier topic of this name, `InvalidArgument` for a partition that
    is not there.
    """
    now = topic.record.incarnation
    if incarnation not in (None, now):
        detail = f"it was deleted and made again: {incarnation} was asked for, this one is {now}"
        raise TopicNotFound(topic.full_name, detail)
    if not 0 <= partition < len(topic.owners):
        problem = f"{partition} is not in 0 to {len(topic.owners) - 1}, the partitions of {topic.full_name!r}"
        raise InvalidArgument("partition", problem)
    return topic.owners[partition]


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
            owner.journal.stored.start,
            owner.journal.stored.stop,
        )
        for owner in topic.owners
    ]
    return TopicLog(topic.full_name, topic.record.incarnation, partitions)
