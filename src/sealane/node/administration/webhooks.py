"""`webhook.*`: subscriptions whose messages are pushed to a URL.

It takes `manage` on the topic, since messages leave the node by it, and `consume`, since they are pushed under the
grants of whoever made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sealane.delivery.config import Retry, SubscriptionConfig, check_config
from sealane.errors import Forbidden, ModeConflict
from sealane.node.administration.table import Command, Commands, Progress
from sealane.node.webhooks.describe import told
from sealane.node.webhooks.records import Owner, Webhook
from sealane.node.webhooks.webhooks import Webhooks

if TYPE_CHECKING:
    from sealane.node.session import Session


class RetryWish(msgspec.Struct, frozen=True):
    """As `sealane.delivery.config.Retry`."""

    kind: Literal["exponential", "fixed"] = "exponential"
    delay_seconds: float = 1.0
    delay_seconds_max: float = 300.0
    attempts_max: int = 16


class OneWebhook(msgspec.Struct):
    topic: str
    subscription: str


class CreateWebhook(OneWebhook):
    url: str
    messages_max: int = 1
    timeout_seconds: float = 15.0
    start: Literal["earliest", "latest"] = "earliest"
    """Of the subscription, if it is new."""
    retry: RetryWish | None = None
    """Of the subscription from now on; None: as it is, or the defaults."""


class ListWebhooks(msgspec.Struct):
    topic: str | None = None


class RotateSecret(OneWebhook):
    keep_seconds: float = 24 * 3600.0
    """How long requests are signed by the secret before, too."""


async def _create(session: Session, asked: CreateWebhook, progress: Progress) -> dict[str, Any]:
    """The one answer in which the secret is."""
    name = _authorised(session, asked.topic)
    webhooks = _webhooks(session)
    endpoint = webhooks.endpoint(asked.url)
    webhooks.check_new(name, asked.subscription)
    owner = _owner(session, name)
    await _ensure_subscription(session, name, asked)
    webhook, secret = await webhooks.create(
        session.node.topic(name),
        asked.subscription,
        asked.url,
        owner,
        messages_max=asked.messages_max,
        timeout_seconds=asked.timeout_seconds,
    )
    await _note(session, "webhook.create", webhook, host=endpoint.authority)
    return {**_told(session, webhook), "secret": secret}


async def _ensure_subscription(session: Session, topic: str, asked: CreateWebhook) -> None:
    """Make it if it is new, and give it the retries that were asked for."""
    found = session.node.topics.get(topic)
    group = found.groups.get(asked.subscription) if found is not None else None
    existing = found.owners[0].core.subscriptions.get(asked.subscription) if found is not None else None
    config = group.config if group is not None else existing.config if existing is not None else SubscriptionConfig()
    if config.mode == "broadcast":
        raise ModeConflict(asked.subscription, "its mode is broadcast: each consumer of it has a position of its own")
    if asked.retry is not None:
        config = msgspec.structs.replace(config, retry=Retry(**msgspec.structs.asdict(asked.retry)))
    if existing is None or asked.retry is not None:
        check_config(config)
        await session.subscribe(topic, asked.subscription, config, asked.start)


async def _list(session: Session, asked: ListWebhooks, progress: Progress) -> list[dict[str, Any]]:
    """Those of a topic, or of all topics of which one may know them."""
    only = None if asked.topic is None else _authorised(session, asked.topic)
    return [
        _told(session, webhook)
        for webhook in _webhooks(session).all()
        if webhook.topic == only or (only is None and _may(session, webhook.topic))
    ]


async def _show(session: Session, asked: OneWebhook, progress: Progress) -> dict[str, Any]:
    return _told(session, _webhooks(session).get(_authorised(session, asked.topic), asked.subscription))


async def _pause(session: Session, asked: OneWebhook, progress: Progress) -> dict[str, Any]:
    webhook = await _webhooks(session).pause(_authorised(session, asked.topic), asked.subscription)
    await _note(session, "webhook.pause", webhook)
    return _told(session, webhook)


async def _resume(session: Session, asked: OneWebhook, progress: Progress) -> dict[str, Any]:
    """Whoever resumes it takes it over."""
    name = _authorised(session, asked.topic)
    webhook = await _webhooks(session).resume(name, asked.subscription, _owner(session, name))
    await _note(session, "webhook.resume", webhook)
    return _told(session, webhook)


async def _rotate(session: Session, asked: RotateSecret, progress: Progress) -> dict[str, Any]:
    name = _authorised(session, asked.topic)
    webhook, secret = await _webhooks(session).rotate(name, asked.subscription, asked.keep_seconds)
    await _note(session, "webhook.rotate", webhook)
    return {**_told(session, webhook), "secret": secret}


async def _remove(session: Session, asked: OneWebhook, progress: Progress) -> dict[str, Any]:
    name = _authorised(session, asked.topic)
    webhook = _webhooks(session).get(name, asked.subscription)
    await _webhooks(session).remove(name, asked.subscription)
    await _note(session, "webhook.remove", webhook)
    return {"topic": name, "subscription": asked.subscription, "removed": True}


def _authorised(session: Session, topic: str) -> str:
    """The topic's full name. Raises `Forbidden`."""
    session.allow("manage", topic)
    return session.allow("consume", topic)


def _may(session: Session, topic: str) -> bool:
    return session.may("manage", topic) and session.may("consume", topic)


def _owner(session: Session, topic: str) -> Owner:
    """Whoever asks, if the node will know later what became of them."""
    principal = session.principal
    if principal.kind != "local" and session.node.identity.accounts.find(principal.name) is None:
        problem = (
            "a webhook goes on when its maker has left, so that must be an account of this node: come in by a "
            "certificate, an API key or a password, and not by another issuer's token"
        )
        raise session.refused(Forbidden(principal.name, "manage", topic, problem))
    return Owner.of(principal)


def _webhooks(session: Session) -> Webhooks:
    return session.node.webhooks


def _told(session: Session, webhook: Webhook) -> dict[str, Any]:
    return told(_webhooks(session), webhook, session.node.measures.now())


async def _note(session: Session, event: str, webhook: Webhook, **details: str) -> None:
    """Of the URL only the host: the rest may be a secret of the receiver's."""
    await session.note(event, webhook.topic, {"subscription": webhook.subscription, **details})


COMMANDS_OF_WEBHOOKS: Commands = {
    "webhook.create": Command(CreateWebhook, _create, "notes"),
    "webhook.list": Command(ListWebhooks, _list, "reads", audited=("topic",)),
    "webhook.show": Command(OneWebhook, _show, "reads", audited=("topic", "subscription")),
    "webhook.pause": Command(OneWebhook, _pause, "notes"),
    "webhook.resume": Command(OneWebhook, _resume, "notes"),
    "webhook.rotate": Command(RotateSecret, _rotate, "notes"),
    "webhook.remove": Command(OneWebhook, _remove, "notes"),
}
