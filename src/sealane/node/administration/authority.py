"""Commands of the certificate authority: `sealane ca …`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import InvalidArgument
from sealane.node.administration.certificate_rights import may_change, may_issue, may_look, may_see
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.accounts import check_account_name
from sealane.security.ca.authority import Usage
from sealane.security.ca.issued import Issued
from sealane.security.ca.records import CertificateRecord, Reason, State
from sealane.security.grants.grants import NODE
from sealane.security.settings import KeyType

if TYPE_CHECKING:
    from sealane.node.session import Session
    from sealane.security.ca.authorities import Authorities

LISTED_MAX = 1_000
"""Certificates in one answer; whoever wants all asks again, from the last one on."""
REVOKED = "the certificate of this connection was revoked"


class Init(msgspec.Struct):
    domain: str | None = None
    key_type: KeyType | None = None


class Issue(msgspec.Struct):
    name: str
    usage: Usage = "client"
    names: list[str] = []
    days: float | None = None
    csr: str | None = None
    roles: list[str] | None = None


class Renew(msgspec.Struct):
    certificate: str
    """A name, a serial or a fingerprint."""
    days: float | None = None
    csr: str | None = None
    force: bool = False
    revoke: bool = False


class Revoke(msgspec.Struct):
    certificate: str
    reason: Reason = "unspecified"


class ListSome(msgspec.Struct):
    name: str | None = None
    domain: str | None = None
    state: State | None = None
    after: str = ""
    """The serial after which to go on."""


class Show(msgspec.Struct):
    certificate: str | None = None
    """Without one: the authorities."""


class RevocationList(msgspec.Struct):
    domain: str | None = None


class Expiring(msgspec.Struct):
    days: float | None = None
    domain: str | None = None


async def init(session: Session, wish: Init, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    made = await _authorities(session).init(domain=wish.domain, key_type=wish.key_type)
    await session.noted("ca.init", made.name, {"fingerprint": made.fingerprint})
    return _plain(made)


async def issue(session: Session, wish: Issue, progress: Progress) -> dict[str, Any]:
    # What cannot be a name is no matter of grants, and has no domain.
    check_account_name(wish.name)
    if wish.usage == "server":
        session.authorise("admin", NODE)
    else:
        may_issue(session, wish.name, wish.roles)
    issued = await _authorities(session).issue(
        wish.name, usage=wish.usage, names=wish.names, days=wish.days, csr=wish.csr, roles=wish.roles
    )
    return await _handed_out(session, "ca.issue", issued)


async def renew(session: Session, wish: Renew, progress: Progress) -> dict[str, Any]:
    may_change(session, wish.certificate)
    old = _authorities(session).renewable(wish.certificate)
    issued = await _authorities(session).renew(
        old.serial, csr=wish.csr, days=wish.days, force=wish.force, revoke=wish.revoke
    )
    if wish.revoke:
        _show_out(session, [old.serial])
    return await _handed_out(session, "ca.renew", issued, replaces=old.serial)


async def revoke(session: Session, wish: Revoke, progress: Progress) -> list[dict[str, Any]]:
    meant = may_change(session, wish.certificate)
    serials = await _authorities(session).revoke(wish.certificate, wish.reason)
    _show_out(session, serials)
    for serial in serials:
        await session.noted("ca.revoke", meant[0].name, {"serial": serial, "reason": wish.reason})
    return [_shape(session, record) for record in _records(session, serials)]


async def list_some(session: Session, wish: ListSome, progress: Progress) -> dict[str, Any]:
    may_look(session, wish.domain)
    now_us = session.surroundings.clock()
    found = [
        record
        for record in _authorities(session).ledger
        if record.serial > wish.after
        and wish.name in (None, record.name)
        and wish.domain in (None, record.domain)
        and wish.state in (None, record.state(now_us))
    ]
    page = found[:LISTED_MAX]
    return {
        "certificates": [_shape(session, record) for record in page],
        "next": page[-1].serial if len(found) > len(page) else None,
    }


async def show(session: Session, wish: Show, progress: Progress) -> list[dict[str, Any]]:
    """Certificates by a name, a serial or a fingerprint; or every authority."""
    if wish.certificate is None:
        session.authorise("admin", NODE)
        return [_plain(info) for info in _authorities(session).all()]
    return [_shape(session, record) for record in may_see(session, wish.certificate)]


async def revocation_list(session: Session, wish: RevocationList, progress: Progress) -> str:
    may_look(session, wish.domain)
    return _authorities(session).crl(wish.domain).decode()


async def expiring(session: Session, wish: Expiring, progress: Progress) -> list[dict[str, Any]]:
    may_look(session, wish.domain)
    days = session.node.settings.security.certificates.renew_days if wish.days is None else wish.days
    if math.isnan(days) or days < 0:
        raise InvalidArgument("days", "must be 0 or more")
    found = _authorities(session).expiring(days)
    return [_shape(session, record) for record in found if wish.domain in (None, record.domain)][:LISTED_MAX]


def _authorities(session: Session) -> Authorities:
    return session.node.identity.authorities


def _records(session: Session, serials: list[str]) -> list[CertificateRecord]:
    return [_authorities(session).ledger.find(serial)[0] for serial in serials]


def _show_out(session: Session, serials: list[str]) -> None:
    """Whoever is inside by one of these leaves now, not when they ask for something next."""
    over = {f"certificate:{serial}" for serial in serials}
    session.node.entrances.show_out(lambda principal: principal.credential in over, REVOKED)


async def _handed_out(session: Session, event: str, issued: Issued, **details: str) -> dict[str, Any]:
    known_by = {"serial": issued.serial, "fingerprint": issued.fingerprint}
    await session.noted(event, issued.name, {**known_by, **details})
    return _plain(issued)


def _shape(session: Session, record: CertificateRecord) -> dict[str, Any]:
    return {**_plain(record), "state": record.state(session.surroundings.clock())}


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


COMMANDS_OF_AUTHORITY: Commands = {
    "ca.init": Command(Init, init, "notes"),
    "ca.issue": Command(Issue, issue, "notes"),
    "ca.renew": Command(Renew, renew, "notes"),
    "ca.revoke": Command(Revoke, revoke, "notes"),
    "ca.list": Command(ListSome, list_some, "reads", audited=("name", "domain", "state")),
    "ca.show": Command(Show, show, "reads", audited=("certificate",)),
    "ca.crl": Command(RevocationList, revocation_list, "reads", audited=("domain",)),
    "ca.expiring": Command(Expiring, expiring, "reads", audited=("domain",)),
}
