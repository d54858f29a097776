"""A node's status as rows: what `status` shows once and `top` shows again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sealane.cli.durations import duration, rate, size

if TYPE_CHECKING:
    from sealane.node.status import NodeStatus

STATUS_COLUMNS = (
    "topic", ">messages", ">published", "subscription", ">acked", ">unsettled", ">oldest", ">leased", ">waiting",
    ">consumers", ">dead",
)  # fmt: skip
NARROW_COLUMNS = ("topic", ">published", "subscription", ">acked", ">unsettled", ">oldest", ">leased", ">dead")
"""What is left of them where there is no room for all."""


def status_rows(status: NodeStatus) -> Iterator[tuple[str, ...]]:
    """A row for each subscription, by `STATUS_COLUMNS`; the topic is told in its first one. The deepest come first."""
    for topic in status.topics:
        head = (topic.name, f"{topic.messages:,}", rate(topic.published_per_second))
        if not topic.subscriptions:
            yield *head, *[""] * (len(STATUS_COLUMNS) - len(head))
        for reader in topic.subscriptions:
            yield (
                *head,
                reader.name,
                rate(reader.acked_per_second),
                f"{reader.depth:,}",
                "" if reader.oldest_seconds is None else duration(reader.oldest_seconds),
                f"{reader.leased:,}",
                f"{reader.waiting:,}",
                f"{reader.consumers:,}",
                f"{reader.dead_lettered_total:,}",
            )
            head = ("", "", "")


def storage_text(status: NodeStatus) -> str:
    used = size(status.storage_bytes)
    if status.storage_bytes_max is not None:
        used += f" of {size(status.storage_bytes_max)}"
    if status.storage_failure is not None:
        used += ", FAILED: no writes are taken"
    elif status.storage_full:
        used += ", FULL: publishes are refused"
    return f"{status.engine}, {used}"


def connections_text(status: NodeStatus) -> str:
    return ", ".join(f"{door} {count:,}" for door, count in sorted(status.connections.items())) or "none"
