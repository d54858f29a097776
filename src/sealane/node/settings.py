"""What a node can be told: the knobs that are not of a topic and not of storage."""

from __future__ import annotations

from dataclasses import dataclass, field

from sealane.errors import InvalidArgument
from sealane.message import Limits
from sealane.node.topic_config import PARTITIONS_MAX
from sealane.node.webhooks.settings import WebhookSettings
from sealane.security.settings import SecuritySettings


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How topics come to be when nobody says otherwise."""

    auto_create: bool = True
    """Create a topic on first publish or consume."""
    partitions: int = 1
    sealed: bool = True
    retention_seconds: float = 7 * 24 * 3600.0
    """Settled messages stay this long for replay."""

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise InvalidArgument(
                "topics.partitions", f"is {self.partitions:,}, from 1 to {PARTITIONS_MAX:,} are possible"
            )
        if self.retention_seconds < 0:
            raise InvalidArgument("topics.retention_seconds", f"is {self.retention_seconds:g}, at least 0")


@dataclass(frozen=True, slots=True)
class StagingSettings:
    """What is staged, to be published together later."""

    keep_seconds: float = 24 * 3600.0
    """Parts that nobody has added to, published or dropped for this long are forgotten."""
    step_bytes: int = 16 << 20
    """About how much of it one commit publishes. More is published in several, one visible after the other."""

    def __post_init__(self) -> None:
        if self.step_bytes < 1:
            raise InvalidArgument("staging.step_bytes", f"is {self.step_bytes:,}, at least 1")
        if self.keep_seconds <= 0:
            raise InvalidArgument("staging.keep_seconds", "must be more than 0: nothing could be published any more")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    limits: Limits = field(default_factory=Limits)
    topics: TopicSettings = field(default_factory=TopicSettings)
    staging: StagingSettings = field(default_factory=StagingSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    ack_flush_seconds: float = 0.005
    """Acks that nobody waits for become durable with the next publish, or after this long."""
    grant_flush_seconds: float = 1.0
    """Grants ride with the next commit, or are journalled after this long."""
    journal_events_max: int = 1_000
    """Events that may wait for the next commit of a partition; more are flushed at once, to bound memory."""
    snapshot_journal_bytes: int = 1 << 20
    """A partition is snapshotted after this much journal, or four times the last snapshot if that is more."""
    delivery_bytes_max: int = 4 << 20
    """About how much one delivery to a consumer may hold."""
    retention_check_seconds: float = 60.0
    """How often retention looks for messages to let go."""

    def __post_init__(self) -> None:
        for name in ("journal_events_max", "snapshot_journal_bytes", "delivery_bytes_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"node.{name}", f"is {getattr(self, name):,}, at least 1")
        if self.retention_check_seconds <= 0:
            raise InvalidArgument("node.retention_check_seconds", "must be more than 0: it would look without a pause")
