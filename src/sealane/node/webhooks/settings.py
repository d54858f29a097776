"""What a node can be told about webhooks."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.errors import InvalidArgument
from sealane.node.webhooks.hosts import AllowedHosts


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """`webhooks.*`."""

    hosts: str | None = None
    """Where webhooks may go, with commas between them: names, `*.suffix`, and the addresses or networks (CIDR) that are
    not public. None: nowhere, webhooks are off."""
    ca: str | None = None
    """A PEM file with authorities that are trusted beside those of the system."""
    failures_max: int = 5
    """Failed requests in a row after which a webhook's circuit breaker opens."""
    open_seconds: float = 5.0
    """How long it stays open at first; each failed try doubles it."""
    open_seconds_max: float = 300.0

    def __post_init__(self) -> None:
        AllowedHosts.read(self.hosts)
        if self.failures_max < 1:
            raise InvalidArgument("webhooks.failures_max", f"is {self.failures_max:,}, at least 1")
        if not 0 < self.open_seconds <= self.open_seconds_max:
            raise InvalidArgument("webhooks.open_seconds", "must be more than 0, and at most webhooks.open_seconds_max")
