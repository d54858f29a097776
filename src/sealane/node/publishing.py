"""Publishing: a batch is spread over its topic's partitions, and everything that goes together is one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sealane.delivery.partition import Publication
from sealane.errors import InvalidArgument
from sealane.message import Batch
from sealane.node.commits import commit_together, stage
from sealane.node.owner import PartitionOwner
from sealane.node.receipts import Receipts, Share
from sealane.node.topics import Topic
from sealane.routing.partitioning import split_by_partition

Spread = list[tuple[PartitionOwner, Share, Batch]]


def spread(topic: Topic, batch: Batch) -> Spread:
    """The batch's share for each partition: by key, by given id, or all to one partition."""
    count = len(topic.owners)
    if count == 1:
        return [(topic.owners[0], Share(0, None, []), batch)]
    keyless = _keyless_partition(topic, batch)
    return [
        (topic.owners[partition], Share(partition, rows, []), batch if rows is None else batch.take(rows))
        for partition, rows in split_by_partition(batch, count, keyless)
    ]


def _keyless_partition(topic: Topic, batch: Batch) -> int:
    meta = batch.meta
    if meta.producer is not None and meta.sequence is not None:
        # A repeated batch must come to the partition that remembers it.
        return (int.from_bytes(meta.producer[:4], "big") + meta.sequence) % len(topic.owners)
    return topic.keyless_partition()


async def publish(targets: Sequence[tuple[Topic, Batch]]) -> list[Receipts]:
    """Publish each batch to its topic, all in one commit; returns when all of it is durable.

    A topic may be named once. Raises before anything is stored if one of the batches is refused.
    """
    spreads = [spread(topic, batch) for topic, batch in targets]
    planned = [(owner, share, owner.plan(part)) for parts in spreads for owner, share, part in parts]
    fresh = [(owner, publication) for owner, _, publication in planned if publication.batch is not None]
    if fresh:
        engine = fresh[0][0].engine
        if any(owner.engine is not engine for owner, _ in fresh):
            raise InvalidArgument("topic", "topics in memory and durable topics cannot be published to in one commit")
        durable = commit_together(engine, [stage(owner, publication) for owner, publication in fresh])
        await asyncio.shield(durable)
    for owner, _, publication in planned:
        await owner.durable(publication.durable_at)
    return _receipts(targets, spreads, [publication for _, _, publication in planned])


def _receipts(
    targets: Sequence[tuple[Topic, Batch]], spreads: Sequence[Spread], publications: Sequence[Publication]
) -> list[Receipts]:
    done = iter(publications)
    receipts = []
    for (_, batch), parts in zip(targets, spreads, strict=True):
        shares = [share._replace(offsets=next(done).offsets) for _, share, _ in parts]
        receipts.append(Receipts(batch, shares))
    return receipts
