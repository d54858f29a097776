"""`grant.*`: what principals and roles may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import Forbidden
from sealane.message import split_topic
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.grants.grants import NODE, ROLE, Grant, check_subject
from sealane.security.principals import Action, Principal

if TYPE_CHECKING:
    from sealane.node.session import Session


class OneGrant(msgspec.Struct, frozen=True):
    subject: str
    action: Action
    pattern: str

    def checked(self) -> Grant:
        grant = Grant(self.subject, self.action, self.pattern)
        grant.check()
        return grant


class ListGrants(msgspec.Struct, frozen=True):
    subject: str | None = None


class CheckGrant(msgspec.Struct, frozen=True):
    principal: str
    """An account, a principal of another issuer, or `role:` and a role."""
    action: Action
    resource: str


async def add(session: Session, wish: OneGrant, progress: Progress) -> dict[str, Any]:
    grant = wish.checked()
    _authorise_giving(session, grant)
    return {"added": await session.node.identity.grants.add(grant)}


async def remove(session: Session, wish: OneGrant, progress: Progress) -> dict[str, Any]:
    grant = wish.checked()
    _authorise_giving(session, grant)
    await session.node.identity.grants.remove(grant)
    return {"removed": True}


async def list_some(session: Session, wish: ListGrants, progress: Progress) -> list[dict[str, Any]]:
    """One's own, and those that one could give."""
    grants = session.node.identity.grants
    own = set(grants.of(session.principal))
    return [
        _plain(grant)
        for grant in grants.all()
        if wish.subject in (None, grant.subject) and (grant in own or grants.may_give(session.principal, grant))
    ]


async def check(session: Session, wish: CheckGrant, progress: Progress) -> dict[str, Any]:
    """Whether someone may do something, and by which grant. Everybody may ask for themselves."""
    asked = _meant(session, wish.principal)
    resource = "/".join(split_topic(wish.resource, asked.domain))
    if asked != session.principal and not session.may("admin", NODE):
        session.authorise("admin", resource)
    grant = session.node.identity.grants.deciding(asked, wish.action, resource)
    return {
        "principal": wish.principal,
        "domain": asked.domain,
        "roles": sorted(asked.roles),
        "action": wish.action,
        "resource": resource,
        "allowed": grant is not None,
        "grant": None if grant is None else _plain(grant),
    }


def _authorise_giving(session: Session, grant: Grant) -> None:
    if session.may("admin", NODE) or session.node.identity.grants.may_give(session.principal, grant):
        return
    hint = "a grant is given by whoever administers all that its pattern takes in"
    raise session.refused(Forbidden(session.principal.name, "admin", grant.pattern, hint))


def _meant(session: Session, name: str) -> Principal:
    if name == session.principal.name:
        return session.principal
    check_subject(name)
    if name.startswith(ROLE):
        return Principal("", roles=frozenset({name.removeprefix(ROLE)}))
    account = session.node.identity.accounts.find(name)
    return Principal(name) if account is None else Principal(account.name, account.domain, account.roles)


def _plain(grant: Grant) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(grant)
    return plain


COMMANDS_OF_GRANTS: Commands = {
    "grant.add": Command(OneGrant, add, audited=("subject", "action", "pattern")),
    "grant.remove": Command(OneGrant, remove, audited=("subject", "action", "pattern")),
    "grant.list": Command(ListGrants, list_some, "reads", audited=("subject",)),
    "grant.check": Command(CheckGrant, check, "reads", audited=("principal", "action", "resource")),
}
