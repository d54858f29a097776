"""Looking at what is stored, without leasing or acknowledging anything."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sealane.cli.blocking import StandardOutput
from sealane.cli.formats import Format
from sealane.errors import SubscriptionNotFound
from sealane.security.envelopes import OpeningKeys, PrivateKey, open_batch

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.node.describe import TopicDescription
    from sealane.node.starts import Start


class StoredMessage:
    """A message as it is stored; see `shapes.Readable`."""

    attempt: int | None = None
    """Stored messages know of no deliveries."""

    def __init__(self, partition: int, offset: int, row: dict[str, Any]) -> None:
        self.partition = partition
        self.offset = offset
        self.id = uuid.UUID(bytes=row["id"])
        self.payload: bytes = row["payload"]
        self.key: bytes | None = row["key"]
        self.headers: dict[str, str] = dict(row["headers"] or ())
        self.priority: int = row["priority"]
        self.created: datetime = row["created"]


async def peek_messages(
    lane: Lane,
    topic: str,
    subscription: str | None,
    start: Start,
    count: int | None,
    form: Format,
    keys: Sequence[PrivateKey] | None = None,
) -> int:
    """Write what is stored from `start`, or from the subscription's position. Returns the number of messages.

    What `keys` do not open is written as it is stored.
    """
    described = await lane.describe_topic(topic)
    begin = _positions(described, start if subscription is None else _position(described, subscription))
    out = StandardOutput()
    done = 0
    async for some in stored_messages(lane, described, begin, keys):
        if isinstance(start, datetime) and subscription is None:
            some = [message for message in some if message.created >= start]
        some = some if count is None else some[: count - done]
        done += await out.write([form.write(message) for message in some])
        if out.closed or done == count:
            break
    return done


async def stored_messages(
    lane: Lane, described: TopicDescription, begin: dict[int, int], keys: Sequence[PrivateKey] | None = None
) -> AsyncIterator[list[StoredMessage]]:
    """Everything from the given offsets by partition to the ends of now, in order, a stored batch at a time."""
    opening = None if keys is None else OpeningKeys(keys)
    for partition in described.partitions:
        at = max(partition.start, begin.get(partition.partition, partition.start))
        while at < partition.end:
            found = await lane.browse(described.name, partition.partition, at)
            if not found:
                break
            for stored in found:
                batch = stored.batch if opening is None else open_batch(stored.batch, opening)[0]
                yield [
                    StoredMessage(partition.partition, stored.base + place, row)
                    for place, row in enumerate(batch.records.to_pylist())
                    if at <= stored.base + place < partition.end
                ]
                at = max(at, stored.stop)


def _position(described: TopicDescription, subscription: str) -> Start:
    for each in described.subscriptions:
        if each.name == subscription:
            return each.positions
    raise SubscriptionNotFound(f"{described.name}:{subscription}", "see `sealane subscription list`")


def _positions(described: TopicDescription, start: Start) -> dict[int, int]:
    if isinstance(start, datetime) or start == "earliest":
        return {}
    if isinstance(start, str):
        return {partition.partition: partition.end for partition in described.partitions}
    return dict(start)
