"""A subscription as a row of a table, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sealane.cli.durations import duration

if TYPE_CHECKING:
    from sealane.node.describe import SubscriptionDescription

SUBSCRIPTION_COLUMNS = (
    "topic", "subscription", "mode", ">unsettled", ">leased", ">waiting", ">dying", ">consumers", ">lease", "filter",
)  # fmt: skip


def subscription_row(topic: str, described: SubscriptionDescription) -> tuple[object, ...]:
    """By `SUBSCRIPTION_COLUMNS`."""
    return (
        topic,
        described.name,
        described.config.mode,
        f"{described.depth:,}",
        f"{described.leased:,}",
        f"{described.waiting:,}",
        f"{described.dying:,}",
        f"{described.consumers:,}",
        duration(described.config.lease_seconds),
        described.config.filter or "",
    )


def subscription_object(described: SubscriptionDescription) -> dict[str, Any]:
    config, retry = described.config, described.config.retry
    return {
        "name": described.name,
        "mode": config.mode,
        "lease_seconds": config.lease_seconds,
        "filter": config.filter,
        "retry": {
            "kind": retry.kind,
            "delay_seconds": retry.delay_seconds,
            "delay_seconds_max": retry.delay_seconds_max,
            "attempts_max": retry.attempts_max,
        },
        "depth": described.depth,
        "leased": described.leased,
        "waiting": described.waiting,
        "dying": described.dying,
        "consumers": described.consumers,
        "positions": {str(partition): offset for partition, offset in sorted(described.positions.items())},
    }
