"""All webhooks of a node: kept, changed, and forgotten with their subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sealane.errors import (
    AlreadyExists,
    InvalidArgument,
    SealaneError,
    Unauthenticated,
    WebhookNotFound,
    WebhookRefused,
)
from sealane.log import get_log
from sealane.node.identity import Identity
from sealane.node.locks import Locks
from sealane.node.topics import Topic
from sealane.node.webhooks.endpoints import Endpoint, read_url
from sealane.node.webhooks.hosts import AllowedHosts, is_loopback
from sealane.node.webhooks.live import Live
from sealane.node.webhooks.records import Owner, Secret, Webhook, webhook_name
from sealane.node.webhooks.settings import WebhookSettings
from sealane.node.webhooks.signing import SECRET_BYTES, written_secret
from sealane.security.principals import Principal

log = get_log("sealane.node.webhooks")

WEBHOOKS_MAX = 1_000
"""Webhooks of a node: each is a task of its own, and may have a request's messages in memory."""
MESSAGES_MAX = 100
"""Messages of one request: a receiver that fails at one of them gets all of them again."""
TIMEOUT_SECONDS_MIN = 1.0
"""A receiver's shortest time to answer: less would fail at distance alone."""
TIMEOUT_SECONDS_MAX = 60.0
"""A receiver's longest time to answer: what takes longer is acknowledged first, and done then."""
KEEP_SECONDS_MAX = 7 * 24 * 3600.0
"""For so long the secret before may still sign: who has not taken the new one by then has missed it."""


class Webhooks:
    """In memory; changes are durable on return."""

    def __init__(self, identity: Identity, topics: Mapping[str, Topic], settings: WebhookSettings) -> None:
        self._records = identity.vault.records("webhook", Webhook)
        self._clock = identity.vault.clock
        self._entropy = identity.vault.entropy
        self._identity = identity
        self._topics = topics
        self._lock = Locks()
        self.settings = settings
        self.hosts = AllowedHosts.read(settings.hosts)
        self.plain_http = False
        """Whether http:// to this machine itself is allowed: on a node without TLS it is no weaker than the node."""
        self.changed: list[Callable[[str], None]] = []
        """Told the name of each webhook that was made, changed or removed."""
        self.live: dict[str, Live] = {}
        """By name: how those do that are pushed by this process."""

    async def load(self) -> None:
        await self._records.load()
        await self.forget_orphans()

    # --- looking ------------------------------------------------------------------------------------------------------

    def all(self) -> list[Webhook]:
        """In the order of their names."""
        return [webhook for _, webhook in self._records]

    def find(self, name: str) -> Webhook | None:
        return self._records.get(name)

    def get(self, topic: str, subscription: str) -> Webhook:
        """Raises `WebhookNotFound`."""
        found = self._records.get(webhook_name(topic, subscription))
        if found is None:
            raise WebhookNotFound(f"{topic}:{subscription}", "`sealane webhook list` tells which there are")
        return found

    def endpoint(self, url: str) -> Endpoint:
        """Where the URL leads. Raises `InvalidArgument` if it is none, `WebhookRefused` if nothing may go there."""
        endpoint = read_url(url)
        host = endpoint.host
        if endpoint.scheme == "http":
            local = host == "localhost" or (not isinstance(host, str) and is_loopback(host))
            if not self.plain_http or not local:
                problem = "webhooks are sent by https; http is for addresses of loopback on a node with --insecure"
                raise WebhookRefused(str(host), problem)
        self.hosts.check_host(host)
        if not isinstance(host, str):
            self.hosts.check_address(host, host)
        return endpoint

    def principal(self, owner: Owner) -> Principal:
        """Whoever messages are pushed for, as they are now. Raises `Unauthenticated` if they may not come in."""
        if owner.kind == "local":
            return owner.principal(owner.roles)
        account = self._identity.accounts.find(owner.name)
        principal = owner.principal(account.roles if account is not None else frozenset())
        if account is None or self._identity.is_over(principal):
            raise Unauthenticated(
                f"{owner.name!r}, for whom it was made, may not come in any more: the account is disabled or gone, or "
                "the credential was revoked; whoever resumes it (`sealane webhook resume`) takes it over"
            )
        return principal

    def obstacle(self, webhook: Webhook) -> str | None:
        """Why nothing may be pushed now, whatever is wanted; None: nothing speaks against it."""
        try:
            self.endpoint(webhook.url)
            self._identity.grants.authorise(self.principal(webhook.owner), "consume", webhook.topic)
        except SealaneError as error:
            return str(error)
        return None

    # --- changing -----------------------------------------------------------------------------------------------------

    async def create(
        self, topic: Topic, subscription: str, url: str, owner: Owner, *, messages_max: int, timeout_seconds: float
    ) -> tuple[Webhook, str]:
        """A new webhook of a subscription, and its secret: it is not to be had again later."""
        self.endpoint(url)
        if not 1 <= messages_max <= MESSAGES_MAX:
            raise InvalidArgument("messages_max", f"{messages_max:,} is not in 1 to {MESSAGES_MAX}")
        if not TIMEOUT_SECONDS_MIN <= timeout_seconds <= TIMEOUT_SECONDS_MAX:
            allowed = f"{TIMEOUT_SECONDS_MIN:g} to {TIMEOUT_SECONDS_MAX:g} seconds"
            raise InvalidArgument("timeout_seconds", f"{timeout_seconds:g} is not in {allowed}")
        name = webhook_name(topic.full_name, subscription)
        async with self._lock(name):
            self.check_new(topic.full_name, subscription)
            topic.check()
            now = self._clock()
            secret = Secret(self._entropy(SECRET_BYTES), now)
            webhook = Webhook(
                topic.full_name,
                topic.record.incarnation,
                subscription,
                url,
                (secret,),
                owner,
                messages_max,
                timeout_seconds,
                created_us=now,
                since_us=now,
            )
            await self._records.put(name, webhook)
        self._tell(name)
        return webhook, written_secret(secret.value)

    def check_new(self, topic: str, subscription: str) -> None:
        """Raise `AlreadyExists` if the subscription has one, `InvalidArgument` if the node has too many."""
        name = webhook_name(topic, subscription)
        if name in self._records:
            raise AlreadyExists("webhook", name, "a subscription has one; remove it first, or use another subscription")
        if len(self._records) >= WEBHOOKS_MAX:
            raise InvalidArgument("webhook", f"this node has {WEBHOOKS_MAX:,}, which is the limit; remove some")

    async def pause(self, topic: str, subscription: str) -> Webhook:
        """Push nothing until it is resumed. A request that is under way ends as it would."""
        return await self._change(topic, subscription, wanted="paused", reason="", since_us=self._clock())

    async def resume(self, topic: str, subscription: str, owner: Owner) -> Webhook:
        """Push again, for this owner, whatever kept it from that before. Raises if something still does."""
        webhook = self.get(topic, subscription)
        self.endpoint(webhook.url)
        now = self._clock()
        return await self._change(topic, subscription, wanted="on", reason="", since_us=now, owner=owner)

    async def stop(self, webhook: Webhook, reason: str) -> None:
        """The receiver wants no more; nothing happens to one that was changed meanwhile."""
        async with self._lock(webhook.name):
            if self._records.get(webhook.name) == webhook:
                broken = msgspec.structs.replace(webhook, wanted="broken", reason=reason, since_us=self._clock())
                await self._records.put(webhook.name, broken)
        self._tell(webhook.name)

    async def rotate(self, topic: str, subscription: str, keep_seconds: float) -> tuple[Webhook, str]:
        """A new secret, and its text. Requests are signed by the one before too, for so long."""
        if not 0 <= keep_seconds <= KEEP_SECONDS_MAX:
            raise InvalidArgument("keep_seconds", f"{keep_seconds:g} is not in 0 to {KEEP_SECONDS_MAX:,.0f} seconds")
        async with self._lock(webhook_name(topic, subscription)):
            webhook, now = self.get(topic, subscription), self._clock()
            secret = Secret(self._entropy(SECRET_BYTES), now)
            former = msgspec.structs.replace(webhook.secrets[0], ends_us=now + round(keep_seconds * 1e6))
            kept = (former,) if keep_seconds else ()
            webhook = msgspec.structs.replace(webhook, secrets=(secret, *kept))
            await self._records.put(webhook.name, webhook)
        self._tell(webhook.name)
        return webhook, written_secret(secret.value)

    async def remove(self, topic: str, subscription: str) -> None:
        """What is not settled stays with the subscription."""
        async with self._lock(webhook_name(topic, subscription)):
            webhook = self.get(topic, subscription)
            await self._records.remove(webhook.name)
        self._tell(webhook.name)

    async def forget_orphans(self) -> None:
        """Remove those whose topic or subscription is gone: what is made anew under that name is not theirs."""
        for name, webhook in self._records:
            if not self._has_subscription(webhook):
                async with self._lock(name):
                    if self._records.get(name) is not webhook:
                        continue  # Another one has its name already.
                    await self._records.remove(name)
                log.info("a webhook went with its subscription", topic=webhook.topic, subscription=webhook.subscription)
                self._tell(name)

    def _has_subscription(self, webhook: Webhook) -> bool:
        topic = self._topics.get(webhook.topic)
        if topic is None or topic.record.incarnation != webhook.incarnation:
            return False
        return any(webhook.subscription in owner.core.subscriptions for owner in topic.owners)

    async def _change(self, topic: str, subscription: str, **changes: Any) -> Webhook:
        async with self._lock(webhook_name(topic, subscription)):
            webhook = msgspec.structs.replace(self.get(topic, subscription), **changes)
            await self._records.put(webhook.name, webhook)
        self._tell(webhook.name)
        return webhook

    def _tell(self, name: str) -> None:
        for told in self.changed:
            told(name)
