"""Reading what is staged, and finding out which partition gets what of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from sealane.delivery.events import Event
from sealane.errors import QueueFull, TopicNotFound
from sealane.message import Batch, Limits
from sealane.message.concat import concat
from sealane.node.commits import Staged, by_schema, stage_all, within_limits
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import spread
from sealane.node.staging.steps import Piece
from sealane.node.topics import Topic

JOINED_BYTES = 1 << 20
JOINED_MESSAGES = 10_000
"""Neighbouring batches are stored as one up to these: a table is cheaper to read than its rows, and copying takes
time."""


@dataclass(slots=True)
class Gathered:
    """Messages on their way from where they were staged to where they are published."""

    batches: dict[PartitionOwner, list[Batch]] = field(default_factory=dict)
    """By the partition that gets them, in the order in which they were staged."""
    topics: dict[str, Topic] = field(default_factory=dict)
    homeless: dict[str, int] = field(default_factory=dict)
    """By topic: how many messages are for one that is gone."""
    damaged: Piece | None = None
    """The last piece of which messages cannot be read any more."""

    def plan(self) -> list[Staged]:
        """Each partition's share. Everything that must not happen in between happens in this call and the commit.

        Raises `QueueFull`, and `TopicNotFound` if a topic was deleted since its messages were read.
        """
        for name, topic in self.topics.items():
            if not topic.owners:
                raise TopicNotFound(name, "it was deleted in this moment")
        planned = [(owner, *_plan(owner, batches)) for owner, batches in self.batches.items()]
        return [stage_all(owner, batches, events) for owner, batches, events in planned if batches]


def _plan(owner: PartitionOwner, batches: Sequence[Batch]) -> tuple[Sequence[Batch], Sequence[Event]]:
    """What a partition stores of these batches, and what happens by that."""
    if not any(batch.meta.given_ids for batch in batches):
        owner.check()
        joined = _joined(batches, owner.settings.limits)
        return joined, owner.core.publish_all(joined, owner.clock())
    whole = concat(batches)
    publication = owner.plan(whole)
    owner.witness.repeated(len(whole) - (0 if publication.batch is None else len(publication.batch)))
    if publication.batch is None:
        return (), ()
    limits = owner.settings.limits
    stored = [batch for part in by_schema(publication, batches) for batch in within_limits(part, limits)]
    return stored, publication.events


def _joined(batches: Sequence[Batch], limits: Limits) -> list[Batch]:
    """The same messages in fewer batches where they are small; large ones are stored as they came, without a copy."""
    groups: list[list[Batch]] = []
    room_bytes = room = 0
    for batch in batches:
        is_other = bool(groups) and groups[-1][0].meta.schema_id != batch.meta.schema_id
        if batch.nbytes > room_bytes or len(batch) > room or is_other:
            groups.append([])
            room_bytes = min(JOINED_BYTES, limits.batch_bytes_max)
            room = min(JOINED_MESSAGES, limits.batch_messages_max)
        groups[-1].append(batch)
        room_bytes -= batch.nbytes
        room -= len(batch)
    return [concat(group) for group in groups]


async def gather(
    source: PartitionOwner, pieces: Iterable[Piece], target: Callable[[str], Topic | None], into: Gathered
) -> None:
    """Read the pieces and spread them over the partitions of their topics; `target` knows those that still exist."""
    for piece in pieces:
        name = piece.batch.topic
        topic = target(name)
        if topic is None:
            into.homeless[name] = into.homeless.get(name, 0) + len(piece)
            continue
        into.topics[name] = topic
        for batch in await _read(source, piece, into):
            for owner, _, share in spread(topic, batch):
                into.batches.setdefault(owner, []).append(share)
        await asyncio.sleep(0)  # Spreading a batch by its keys takes a while: others have their turn in between.


async def _read(source: PartitionOwner, piece: Piece, into: Gathered) -> list[Batch]:
    found = []
    at, stop = piece.batch.base + piece.start, piece.batch.base + piece.stop
    while at < stop:
        stored = await source.fetch(at)
        if stored is None or stored.base > at:
            into.damaged = piece
            at = stop if stored is None else stored.base
            continue
        # Compaction may have joined it with its neighbours since.
        batch = stored.batch.slice(at - stored.base, min(stop, stored.stop) - stored.base)
        found.append(batch.with_meta(msgspec.structs.replace(batch.meta, given_ids=piece.batch.given_ids)))
        at = stored.stop
    return found


def check_room(topic: Topic, messages: int) -> None:
    """Raise `QueueFull` if the topic's partitions together have no room for so many."""
    rooms = [owner.core.room() for owner in topic.owners]
    limited = [room for room in rooms if room is not None]
    limit = topic.config.messages_max
    if limit is not None and len(limited) == len(rooms) and sum(limited) < messages:
        raise QueueFull(topic.full_name, limit * len(rooms), limit * len(rooms) - sum(limited))
