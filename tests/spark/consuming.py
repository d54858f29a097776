"""A consumer that settles what it takes, for what is told of it afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sealane.client.sync import SyncLane


def consume(lane: SyncLane, topic: str, count: int) -> None:
    """Have `billing` acknowledge so many, durably."""
    taken = 0
    for batch in lane.consume_batches(topic, "billing", messages_max=10):
        batch.ack(confirm=True)
        taken += len(batch)
        if taken >= count:
            return
