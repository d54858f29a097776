"""Grants: what principals and roles may do, and the one place where it is decided."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from sealane.errors import Forbidden
from sealane.security.principals import ADMIN_ROLE, Action, Principal

ROLE = "role:"
"""In front of a role's name where a grant's subject is one."""
OWN_DOMAIN = "~"
"""In a pattern: the domain of whoever asks."""
VERDICTS_MAX = 100_000
"""Verdicts remembered; beyond it all are forgotten, and found again as they are asked."""


class Grant(msgspec.Struct, frozen=True, order=True):
    """`subject` may do `action` to what matches `pattern`."""

    subject: str
    """A principal's name, or `role:` and a role's."""
    action: Action
    pattern: str
    """`domain/name`, where `*` stands for any characters but a slash, and the domain `~` for one's own."""


BUILT_IN = (
    Grant(ROLE + ADMIN_ROLE, "admin", "*/*"),
    Grant(ROLE + "member", "publish", "~/*"),
    Grant(ROLE + "member", "consume", "~/*"),
    Grant(ROLE + "producer", "publish", "~/*"),
    Grant(ROLE + "consumer", "consume", "~/*"),
    Grant(ROLE + "manager", "manage", "~/*"),
)
"""What the roles that are always there may do."""


class Grants:
    """All grants in force. Whoever has none for something may not do it."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._by_subject: dict[str, set[Grant]] = {}
        self._verdicts: dict[tuple[Principal, Action, str], bool] = {}
        for grant in (*BUILT_IN, *grants):
            self.add(grant)

    def add(self, grant: Grant) -> None:
        self._by_subject.setdefault(grant.subject, set()).add(grant)
        self._verdicts.clear()

    def remove(self, grant: Grant) -> None:
        self._by_subject.get(grant.subject, set()).discard(grant)
        self._verdicts.clear()

    def authorise(self, principal: Principal, action: Action, resource: str) -> None:
        """Raise `Forbidden` unless the principal may do this to `domain/name`. Nowhere else is that decided."""
        asked = (principal, action, resource)
        verdict = self._verdicts.get(asked)
        if verdict is None:
            verdict = self._decide(principal, action, resource)
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            self._verdicts[asked] = verdict
        if not verdict:
            raise Forbidden(principal.name, action, resource, "it has no grant for that")

    def _decide(self, principal: Principal, action: Action, resource: str) -> bool:
        subjects = (principal.name, *(ROLE + role for role in principal.roles))
        return any(
            grant.action in (action, "admin") and matches(grant.pattern, principal.domain, resource)
            for subject in subjects
            for grant in self._by_subject.get(subject, ())
        )


def matches(pattern: str, own_domain: str, resource: str) -> bool:
    """Whether a pattern takes in `domain/name`. Nothing in a name or a pattern but `*` has a meaning of its own."""
    if pattern.startswith(OWN_DOMAIN + "/"):
        domain, _, name = resource.partition("/")
        return domain == own_domain and _expression(pattern.removeprefix(OWN_DOMAIN + "/")).fullmatch(name) is not None
    return _expression(pattern).fullmatch(resource) is not None


@lru_cache(maxsize=10_000)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
