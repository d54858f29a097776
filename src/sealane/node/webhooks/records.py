"""A webhook as it is kept: sealed, since its secrets sign for the node and its URL may hold one of the receiver's."""

from __future__ import annotations

from typing import Literal

import msgspec

from sealane.security.principals import Action, Kind, Principal

Wanted = Literal["on", "paused", "broken"]


class Secret(msgspec.Struct, frozen=True):
    """By what requests are signed. The bytes are in no `repr`."""

    value: bytes
    created_us: int
    ends_us: int | None = None
    """From when on nothing is signed by it: a newer one has taken its place. None: it is the newest."""

    def __repr__(self) -> str:
        return f"Secret(created_us={self.created_us}, ends_us={self.ends_us})"


class Owner(msgspec.Struct, frozen=True):
    """Under whose grants messages are pushed: who made the webhook, or resumed it last.

    What a credential narrows stays narrow, and a credential that is revoked ends what was made by it; that one expires
    does not, since tokens last for minutes.
    """

    name: str
    domain: str
    kind: Kind
    credential: str = ""
    narrowed: tuple[tuple[Action, str], ...] = ()
    roles: frozenset[str] = frozenset()
    """Of whoever runs the broker in a process of their own; accounts have the roles that they have now."""

    @classmethod
    def of(cls, principal: Principal) -> Owner:
        return cls(
            principal.name,
            principal.domain,
            principal.kind,
            principal.credential,
            principal.narrowed,
            principal.roles if principal.kind == "local" else frozenset(),
        )

    def principal(self, roles: frozenset[str]) -> Principal:
        """Whoever it is now, with these roles."""
        return Principal(
            self.name, self.domain, roles, self.kind, self.credential, self.credential, narrowed=self.narrowed
        )


class Webhook(msgspec.Struct, frozen=True):
    topic: str
    """Its full name."""
    incarnation: int
    """Tells the topic from a later one of the same name, which is none of this webhook's business."""
    subscription: str
    url: str
    secrets: tuple[Secret, ...]
    """The newest first; two while one takes the other's place."""
    owner: Owner
    messages_max: int
    timeout_seconds: float
    created_us: int
    wanted: Wanted = "on"
    """`paused` by a person; `broken`: the receiver wants no more."""
    reason: str = ""
    """Why it is broken."""
    since_us: int = 0
    """Since when it is as it is wanted: turned on anew, it begins without a past."""

    @property
    def name(self) -> str:
        """Among all webhooks: a subscription has at most one."""
        return webhook_name(self.topic, self.subscription)

    def signing(self, now_us: int) -> list[bytes]:
        """The secrets by which a request is signed now."""
        return [each.value for each in self.secrets if each.ends_us is None or now_us < each.ends_us]

    def __repr__(self) -> str:
        return f"Webhook({self.name!r})"


def webhook_name(topic: str, subscription: str) -> str:
    """Neither part has a colon in it."""
    return f"{topic}:{subscription}"
