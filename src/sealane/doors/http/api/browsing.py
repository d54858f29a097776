"""Stored messages as JSON, for who looks at them without taking them."""

from __future__ import annotations

from typing import Any

from sealane.node.deliveries import Delivery, Part
from sealane.node.message_json import deliveries_json
from sealane.node.session import Session

BROWSE_MESSAGES_MAX = 1_000
"""Messages of one look: more than a person reads, and a program asks again."""


async def browse(
    session: Session, topic: str, partition: int, offset: int, messages_max: int
) -> tuple[list[dict[str, Any]], int]:
    """The messages from this offset on, and the offset behind them."""
    messages: list[dict[str, Any]] = []
    for stored in await session.browse(topic, partition, offset):
        first = max(offset, stored.base)
        stop = min(stored.stop, first + messages_max - len(messages))
        if first >= stop:
            continue
        part = Part(range(first, stop), stored.batch.slice(first - stored.base, stop - stored.base))
        messages += deliveries_json([Delivery(topic, partition, "", 0, 0, (part,), ())])
        offset = stop
    return messages, offset
