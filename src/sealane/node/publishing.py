"""Publishing: a batch is spread over its topic's partitions, and everything that goes together is one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np

from sealane.delivery.partition import Publication
from sealane.errors import InvalidArgument, SchemaMismatch
from sealane.message import Batch
from sealane.node.commits import commit_together, stage
from sealane.node.owner import PartitionOwner
from sealane.node.receipts import Receipts, Share
from sealane.node.topics import Topic
from sealane.prompt import Prompt
from sealane.routing.partitioning import split_by_partition

Spread = list[tuple[PartitionOwner, np.ndarray | None, Batch]]
"""For each partition its owner, the rows of the batch that it gets (None: all of them), and these rows."""


def spread(topic: Topic, batch: Batch) -> Spread:
    """The batch's share for each partition: by key, by given id, or all to one partition."""
    topic.check()
    count = len(topic.owners)
    if count == 1:
        return [(topic.owners[0], None, batch)]
    keyless = _keyless_partition(topic, batch)
    return [
        (topic.owners[partition], rows, batch if rows is None else batch.take(rows))
        for partition, rows in split_by_partition(batch, count, keyless)
    ]


def admit(topic: Topic, batch: Batch) -> Batch:
    """The batch as it may be stored: of a topic with a schema, it fits that, and says which version of it.

    Whatever is published passes here once. Raises `SchemaMismatch`, `SchemaNotFound`.
    """
    if topic.schema is None:
        return batch
    try:
        return topic.schema.admitted(batch)
    except SchemaMismatch:
        if _is_repeat(topic, batch):
            return batch  # It was stored when it did fit: whoever asks again has to hear that.
        raise


def _is_repeat(topic: Topic, batch: Batch) -> bool:
    meta = batch.meta
    if not meta.given_ids and (meta.producer is None or meta.sequence is None):
        return False
    return all(owner.plan(part).batch is None for owner, _, part in spread(topic, batch))


def _keyless_partition(topic: Topic, batch: Batch) -> int:
    meta = batch.meta
    if meta.producer is not None and meta.sequence is not None:
        # A repeated batch must come to the partition that remembers it.
        return (int.from_bytes(meta.producer[:4], "big") + meta.sequence) % len(topic.owners)
    return topic.keyless_partition()


class Publishing(msgspec.Struct, frozen=True, eq=False):
    """A publish that the engine has in its order and that is not durable yet."""

    receipts: list[Receipts]
    """One for each target; true once it is durable."""
    commit: Prompt[None] | None
    """None: everything was here before."""
    repeats: list[tuple[PartitionOwner, int]]
    """What was here before, and may itself not be durable yet: durable when the partition is up to that offset."""

    async def durable(self) -> None:
        """Wait for it. A caller who is cancelled leaves the commit to itself."""
        if self.commit is not None:
            await asyncio.shield(self.commit)
        for owner, end in self.repeats:
            await owner.durable(end)


def start_publish(targets: Sequence[tuple[Topic, Batch]]) -> Publishing:
    """Hand each batch to the engine for its topic, all in one commit. A topic may be named once.

    Raises before anything is stored if one of the batches is refused.
    """
    receipts: list[Receipts] = []
    fresh: list[tuple[PartitionOwner, Publication]] = []
    repeats: list[tuple[PartitionOwner, int]] = []
    for topic, batch in targets:
        shares = []
        for owner, rows, part in spread(topic, admit(topic, batch)):
            publication = owner.plan(part)
            shares.append(Share(owner.key.partition, rows, publication.offsets))
            if publication.batch is not None:
                fresh.append((owner, publication))
            if publication.batch is not part:
                owner.witness.repeated(len(part) - (0 if publication.batch is None else len(publication.batch)))
                repeats.append((owner, publication.durable_at))
        receipts.append(Receipts(batch, shares))
    commit = None
    if fresh:
        engine = fresh[0][0].engine
        if len(fresh) > 1 and any(owner.engine is not engine for owner, _ in fresh):
            raise InvalidArgument("topic", "topics in memory and durable topics cannot be published to in one commit")
        commit = commit_together(engine, [stage(owner, publication) for owner, publication in fresh])
    return Publishing(receipts, commit, repeats)
