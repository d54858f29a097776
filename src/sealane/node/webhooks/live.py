"""How a webhook does while its messages are pushed: nothing of it is kept over a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sealane.node.webhooks.breaker import Breaker
from sealane.node.webhooks.settings import WebhookSettings
from sealane.node.webhooks.verdicts import Verdict


class LastRequest(NamedTuple):
    time_us: int
    messages: int
    verdict: Verdict


@dataclass(slots=True, eq=False)
class Live:
    """Written by whoever pushes, read by whoever looks."""

    breaker: Breaker
    since_us: int = 0
    """Of which time of the webhook it is: one that was resumed since begins anew."""
    last: LastRequest | None = None

    @classmethod
    def anew(cls, settings: WebhookSettings, since_us: int) -> Live:
        breaker = Breaker(settings.failures_max, settings.open_seconds, settings.open_seconds_max)
        return cls(breaker, since_us)
