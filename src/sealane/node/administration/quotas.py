"""`quota.*`: how much a principal or a domain may do a second, and how much of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.grants.grants import NODE
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quota, Quotas, Scope, Subject, subject_of

if TYPE_CHECKING:
    from sealane.node.session import Session


class OneSubject(msgspec.Struct):
    scope: Scope
    name: str

    @property
    def subject(self) -> Subject:
        return subject_of(f"{self.scope}:{self.name}")


class SetQuota(OneSubject):
    """What is not given stays as it was; 0 is no limit."""

    messages_per_second: int | None = None
    bytes_per_second: int | None = None
    requests_per_second: int | None = None
    connections_max: int | None = None


class ShowQuota(msgspec.Struct):
    """Without a scope: those of whoever asks."""

    scope: Scope | None = None
    name: str = ""


class NoArguments(msgspec.Struct):
    pass


async def _set(session: Session, asked: SetQuota, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    quota = Quota(*(getattr(asked, name) for name in Quota.__struct_fields__))
    await _quotas(session).set(asked.subject, quota, session.node.measures.now())
    return _told(session, asked.subject)


async def _remove(session: Session, asked: OneSubject, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    await _quotas(session).remove(asked.subject, session.node.measures.now())
    return _told(session, asked.subject)


async def _list(session: Session, asked: NoArguments, progress: Progress) -> list[dict[str, Any]]:
    session.authorise("admin", NODE)
    return [_told(session, subject) for subject, _ in _quotas(session).all()]


async def _show(session: Session, asked: ShowQuota, progress: Progress) -> list[dict[str, Any]]:
    """Everybody may know what holds for themselves."""
    who = session.principal
    if asked.scope is None:
        return [_told(session, subject) for subject in (Subject("principal", who.name), Subject("domain", who.domain))]
    session.authorise("admin", NODE)
    return [_told(session, subject_of(f"{asked.scope}:{asked.name}"))]


def _quotas(session: Session) -> Quotas:
    return session.node.identity.quotas


def _told(session: Session, subject: Subject) -> dict[str, Any]:
    """What was said of it by name, what holds, and what is left of it now."""
    quotas, entrances = _quotas(session), session.node.entrances
    is_principal = subject.scope == "principal"
    # Of others it is not known by what they will come in; the settings are about those with a credential.
    is_own = is_principal and subject.name == session.principal.name
    who = session.principal if is_own else Principal(subject.name, kind="key")
    return {
        "scope": subject.scope,
        "name": subject.name,
        "set": msgspec.to_builtins(quotas.said_or_nothing(subject)),
        "holds": dict(quotas.effective(subject, by_settings=who.kind != "local")),
        "left": {what: round(level, 3) for what, level in quotas.left(subject, session.node.measures.now()).items()},
        "connections": entrances.connections_of(subject.name) if is_principal else None,
        "connections_max": quotas.connections_max(who) if is_principal else None,
    }


_SAID = ("scope", "name", *Quota.__struct_fields__)

COMMANDS_OF_QUOTAS: Commands = {
    "quota.set": Command(SetQuota, _set, audited=_SAID),
    "quota.remove": Command(OneSubject, _remove, audited=("scope", "name")),
    "quota.list": Command(NoArguments, _list, "reads"),
    "quota.show": Command(ShowQuota, _show, "reads", audited=("scope", "name")),
}
