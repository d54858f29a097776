"""Measures: what a node has done, counted as it happens, a few additions a batch. Gauges are read when somebody asks.

Everything here counts since the node was opened, and belongs to the node's loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from sealane.errors import RateLimited
from sealane.log import get_log
from sealane.node.instruments import COUNT_BOUNDS, Histogram, Rate

log = get_log("sealane.node")

SLOW_SYNC_SECONDS = 1.0
"""A sync that takes longer is logged: producers wait for it."""


class SubscriptionMeasures:
    """Messages of one subscription, over its topic's partitions, by what became of them."""

    __slots__ = (
        "acked",
        "acked_rate",
        "connection_ended",
        "dead_lettered",
        "delivered",
        "delivered_bytes",
        "dropped",
        "expired",
        "lease_expired",
        "nacked",
        "redelivered",
        "redriven",
        "released",
    )

    def __init__(self) -> None:
        self.delivered = 0
        self.delivered_bytes = 0
        self.redelivered = 0
        self.acked = 0
        self.nacked = 0
        self.lease_expired = 0
        self.connection_ended = 0
        self.released = 0
        self.expired = 0
        self.dropped = 0
        self.dead_lettered = 0
        self.redriven = 0
        self.acked_rate = Rate()


class TopicMeasures:
    """Messages of one topic, and of its subscriptions."""

    __slots__ = ("duplicates", "published", "published_bytes", "published_rate", "subscriptions")

    def __init__(self) -> None:
        self.published = 0
        self.published_bytes = 0
        self.published_rate = Rate()
        self.duplicates = 0
        self.subscriptions: dict[str, SubscriptionMeasures] = {}

    def subscription(self, name: str) -> SubscriptionMeasures:
        """Those of the subscription; a broadcast consumer's own position counts with its subscription."""
        found = self.subscriptions.get(name)
        if found is None:
            name = name.partition("@")[0]
            found = self.subscriptions.setdefault(name, SubscriptionMeasures())
        return found


class Measures:
    """Of one node."""

    def __init__(self) -> None:
        self.now = asyncio.get_running_loop().time
        self.topics: dict[str, TopicMeasures] = {}
        """By full name; they go with their topic."""
        self.publish_to_durable_seconds = Histogram()
        self.publish_to_ack_seconds = Histogram()
        self.commit_seconds = Histogram()
        self.sync_seconds = Histogram()
        self.group_commits = Histogram(COUNT_BOUNDS)
        self.committed_bytes = 0
        self.refusals: Counter[str] = Counter()
        """By the error's class: what doors have answered with an error."""
        self.limited: Counter[tuple[str, str]] = Counter()
        """By whose quota it was (`principal`, `domain`) and of what it was short: requests that came too soon."""
        self.connections_refused: Counter[str] = Counter()
        """By what had too many: `address`, `principal`."""
        self.handshakes_refused: Counter[str] = Counter()
        """By door: connections that did not get through their TLS handshake."""
        self.connections: dict[str, Callable[[], int]] = {}
        """By door: how many connections there are now. A door puts itself here when it starts."""
        self.webhook_requests: Counter[str] = Counter()
        """By how they were answered; see `sealane.node.webhooks.verdicts.Outcome`."""
        self.webhook_messages: Counter[str] = Counter()
        """By what became of them: `acked`, `nacked`, or `returned` without an attempt."""
        self.webhook_seconds = Histogram()
        """From the first byte of a request to the answer, or to giving up."""

    def topic(self, full_name: str) -> TopicMeasures:
        found = self.topics.get(full_name)
        if found is None:
            found = self.topics[full_name] = TopicMeasures()
        return found

    def forget_topic(self, full_name: str) -> None:
        self.topics.pop(full_name, None)

    def refused(self, error: BaseException) -> None:
        """A command was answered with this error."""
        self.refusals[type(error).__name__] += 1

    def rate_limited(self, error: RateLimited) -> None:
        """A quota was used up for now."""
        self.limited[error.subject.partition(" ")[0], error.what] += 1

    def crowded(self, of: str) -> None:
        """A connection was one too many."""
        self.connections_refused[of] += 1

    def group_committed(self, commits: int, group_bytes: int, seconds: float, sync_seconds: float) -> None:
        """The engine has made a group durable; see `EngineWatch.committed`."""
        self.group_commits.observe(commits)
        self.committed_bytes += group_bytes
        self.commit_seconds.observe(seconds)
        self.sync_seconds.observe(sync_seconds)
        if sync_seconds > SLOW_SYNC_SECONDS:
            milliseconds = round(sync_seconds * 1e3)
            log.warning("a sync took long; producers waited for it", duration_ms=milliseconds, bytes=group_bytes)
