"""What was asked for by name, and is not there, or is there otherwise."""

from __future__ import annotations

from sealane.errors.base import SealaneError


class NotFound(SealaneError):
    """Something that was asked for by name does not exist."""

    kind = "object"

    def __init__(self, name: str, hint: str = "") -> None:
        self.name = name
        super().__init__(f"{self.kind} {name!r} does not exist" + (f"; {hint}" if hint else ""))


class TopicNotFound(NotFound):
    kind = "topic"


class SubscriptionNotFound(NotFound):
    kind = "subscription"


class ExchangeNotFound(NotFound):
    kind = "exchange"


class SchemaNotFound(NotFound):
    kind = "schema"


class AccountNotFound(NotFound):
    kind = "account"


class CertificateNotFound(NotFound):
    kind = "certificate"


class AuthorityNotFound(NotFound):
    kind = "authority"


class QuotaNotFound(NotFound):
    kind = "quota"


class GrantNotFound(NotFound):
    kind = "grant"


class KeyNotFound(NotFound):
    kind = "API key"


class UserNotFound(NotFound):
    kind = "user"


class RecipientNotFound(NotFound):
    kind = "recipient"


class WebhookNotFound(NotFound):
    kind = "webhook"


class AlreadyExists(SealaneError):
    """Something with that name exists and differs from what was asked for."""

    def __init__(self, kind: str, name: str, difference: str = "") -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {name!r} already exists" + (f": {difference}" if difference else ""))


class Unroutable(SealaneError):
    """An exchange has no binding that takes this routing key; nothing was published."""

    def __init__(self, exchange: str, routing_key: str) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        super().__init__(
            f"exchange {exchange!r} routes {routing_key!r} nowhere: nothing was published; bind a topic to that key"
        )


class ModeConflict(SealaneError):
    """A consumer asked for a subscription in a way that the subscription does not work."""

    def __init__(self, subscription: str, problem: str) -> None:
        self.subscription = subscription
        super().__init__(f"subscription {subscription!r}: {problem}")
