"""What is told of a webhook: everything but its secrets."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from sealane.node.webhooks.records import Webhook
from sealane.node.webhooks.webhooks import Webhooks

State = Literal["on", "paused", "broken"]

BREAKER_STATES = ("closed", "open", "half-open")


def state_of(webhooks: Webhooks, webhook: Webhook) -> tuple[State, str]:
    """How it is, and why if it is broken."""
    if webhook.wanted != "on":
        return webhook.wanted, webhook.reason
    obstacle = webhooks.obstacle(webhook)
    return ("on", "") if obstacle is None else ("broken", obstacle)


def told(webhooks: Webhooks, webhook: Webhook, now: float) -> dict[str, Any]:
    """`now` is the clock of its breaker."""
    state, reason = state_of(webhooks, webhook)
    live = webhooks.live.get(webhook.name)
    last = live.last if live is not None else None
    return {
        "topic": webhook.topic,
        "subscription": webhook.subscription,
        "url": webhook.url,
        "state": state,
        "reason": reason,
        "breaker": None if live is None else live.breaker.state(now),
        "failures": None if live is None else live.breaker.failures,
        "retry_seconds": None if live is None else round(live.breaker.wait_seconds(now), 3),
        "last": None
        if last is None
        else {
            "time_us": last.time_us,
            "messages": last.messages,
            "outcome": last.verdict.outcome,
            "reason": last.verdict.reason,
        },
        "messages_max": webhook.messages_max,
        "timeout_seconds": webhook.timeout_seconds,
        "owner": webhook.owner.name,
        "created_us": webhook.created_us,
        "secrets": [{"created_us": each.created_us, "ends_us": each.ends_us} for each in webhook.secrets],
    }


def counts(webhooks: Webhooks, now: float) -> dict[str, int]:
    """How many are in which state; those that are on by the state of their breaker."""
    found: Counter[str] = Counter(dict.fromkeys((*BREAKER_STATES, "paused", "broken"), 0))
    for webhook in webhooks.all():
        state, _ = state_of(webhooks, webhook)
        live = webhooks.live.get(webhook.name)
        found[state if state != "on" else "closed" if live is None else live.breaker.state(now)] += 1
    return dict(found)
