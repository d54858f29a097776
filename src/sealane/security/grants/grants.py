"""Grants: what principals and roles may do, and the one place where it is decided."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import get_args
from urllib.parse import quote

import msgspec

from sealane.errors import Forbidden, GrantNotFound, InvalidArgument
from sealane.security.grants.patterns import OWN_DOMAIN as OWN_DOMAIN
from sealane.security.grants.patterns import check_pattern, contains, takes_in
from sealane.security.principals import ADMIN_ROLE, Action, Principal
from sealane.security.records import SYSTEM_DOMAIN, Vault

ROLE = "role:"
"""In front of a role's name where a grant's subject is one."""
NODE = f"{SYSTEM_DOMAIN}/node"
"""What is administered where it is no domain or topic but the node itself."""
ACTIONS: tuple[Action, ...] = get_args(Action)
SUBJECT_CHARS_MAX = 256
"""Of a grant's subject: room for what other issuers of tokens call people."""
VERDICTS_MAX = 100_000
"""Verdicts remembered; beyond it all are forgotten, and found again as they are asked."""

_SUBJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@:+|=-]*[A-Za-z0-9=])?", re.ASCII)


class Grant(msgspec.Struct, frozen=True, order=True):
    """`subject` may do `action` to what matches `pattern`."""

    subject: str
    """A principal's name, or `role:` and a role's."""
    action: Action
    pattern: str
    """See `sealane.security.grants.patterns`; the domain `~` is one's own."""

    def check(self) -> None:
        """Raise `InvalidArgument` unless it can be granted."""
        check_subject(self.subject)
        if self.action not in ACTIONS:
            raise InvalidArgument("action", f"{self.action!r} is not one of {', '.join(ACTIONS)}")
        check_pattern(self.pattern)

    @property
    def place(self) -> str:
        """Its name among the records: no two grants share it, whatever characters they are of."""
        return "|".join(quote(part, safe="") for part in (self.subject, self.action, self.pattern))

    def __str__(self) -> str:
        return f"{self.subject} {self.action} {self.pattern}"


BUILT_IN = (
    Grant(ROLE + ADMIN_ROLE, "admin", "*/*"),
    Grant(ROLE + "member", "publish", "~/*"),
    Grant(ROLE + "member", "consume", "~/*"),
    Grant(ROLE + "producer", "publish", "~/*"),
    Grant(ROLE + "consumer", "consume", "~/*"),
    Grant(ROLE + "manager", "manage", "~/*"),
)
"""What the roles that are always there may do."""


def check_subject(subject: str) -> None:
    """Raise `InvalidArgument` unless it can be a grant's: an account, a principal of another issuer, or a role."""
    if len(subject) > SUBJECT_CHARS_MAX:
        raise InvalidArgument("subject", f"it has {len(subject):,} characters, the limit is {SUBJECT_CHARS_MAX}")
    if _SUBJECT.fullmatch(subject) is None:
        problem = "is no name of an account, nor `role:` and a role's name, nor `external:` and a subject"
        raise InvalidArgument("subject", f"{subject!r} {problem}")


class Grants:
    """All grants in force, in memory. Whoever has none for something may not do it. Changes are durable on return, and
    hold from then on for whoever is inside already.
    """

    def __init__(self, vault: Vault) -> None:
        self._records = vault.records("grant", Grant)
        self._by_subject: dict[str, set[Grant]] = {}
        self._verdicts: dict[tuple[Principal, Action, str], bool] = {}
        self.changed: list[Callable[[], None]] = []
        """Called after each change: what was allowed may not be any more."""
        self._take(BUILT_IN)

    async def load(self) -> None:
        await self._records.load()
        self._take(grant for _, grant in self._records)

    def _take(self, grants: Iterable[Grant]) -> None:
        for grant in grants:
            self._by_subject.setdefault(grant.subject, set()).add(grant)
        self._verdicts.clear()

    # --- changing -----------------------------------------------------------------------------------------------------

    async def add(self, grant: Grant) -> bool:
        """False if it was there before. Raises `InvalidArgument`."""
        grant.check()
        if grant in self._by_subject.get(grant.subject, ()):
            return False
        await self._records.put(grant.place, grant)
        self._take([grant])
        self._tell()
        return True

    async def remove(self, grant: Grant) -> None:
        """Raises `GrantNotFound`; those of the roles that are always there cannot be removed."""
        grant.check()
        if grant in BUILT_IN:
            raise InvalidArgument("grant", f"{str(grant)!r} is what the role is; give the account another role instead")
        if grant not in self._by_subject.get(grant.subject, ()):
            raise GrantNotFound(str(grant), "`sealane grant list` tells which there are")
        await self._records.remove(grant.place)
        self._by_subject[grant.subject].discard(grant)
        self._verdicts.clear()
        self._tell()

    def _tell(self) -> None:
        for told in self.changed:
            told()

    # --- deciding -----------------------------------------------------------------------------------------------------

    def all(self) -> list[Grant]:
        """In order, those of the roles that are always there too."""
        return sorted(grant for grants in self._by_subject.values() for grant in grants)

    def authorise(self, principal: Principal, action: Action, resource: str) -> None:
        """Raise `Forbidden` unless the principal may do this to `domain/name`. Nowhere else is that decided."""
        if not self.allows(principal, action, resource):
            raise Forbidden(principal.name, action, resource, "it has no grant for that")

    def allows(self, principal: Principal, action: Action, resource: str) -> bool:
        asked = (principal, action, resource)
        verdict = self._verdicts.get(asked)
        if verdict is None:
            verdict = self.deciding(principal, action, resource) is not None
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            self._verdicts[asked] = verdict
        return verdict

    def allows_any(self, principal: Principal, resource: str) -> bool:
        """Whether the principal may do anything to it: what they may do nothing to, they do not even see."""
        return any(self.allows(principal, action, resource) for action in ACTIONS)

    def deciding(self, principal: Principal, action: Action, resource: str) -> Grant | None:
        """The grant by which the principal may do this; None if there is none, or if its credential is narrower."""
        if principal.narrowed and not any(
            _covers(Grant(principal.name, *left), principal, action, resource) for left in principal.narrowed
        ):
            return None
        return next((grant for grant in self.of(principal) if _covers(grant, principal, action, resource)), None)

    def of(self, principal: Principal) -> list[Grant]:
        """What the principal has been granted, itself or by a role."""
        subjects = (principal.name, *sorted(ROLE + role for role in principal.roles))
        return [grant for subject in subjects for grant in sorted(self._by_subject.get(subject, ()))]

    def may_give(self, principal: Principal, grant: Grant) -> bool:
        """Whether the principal may grant this, or take it away: it administers the node, or all that the grant's
        pattern could ever take in.
        """
        if self.allows(principal, "admin", NODE):
            return True
        administered = [held.pattern for held in self.of(principal) if held.action == "admin"]
        left = [pattern for action, pattern in principal.narrowed if action == "admin"]
        return all(
            any(contains(pattern, grant.pattern, principal.domain) for pattern in patterns)
            for patterns in ([administered, left] if principal.narrowed else [administered])
        )


def _covers(grant: Grant, principal: Principal, action: Action, resource: str) -> bool:
    if grant.action not in (action, "admin"):
        return False
    administers = grant.action == "admin"
    return takes_in(
        grant.pattern,
        resource,
        principal.domain,
        system_domains=administers,
        # The system's topics may be looked at where their domain may be; they are written by the node alone.
        system_names=administers or action == "consume",
    )
