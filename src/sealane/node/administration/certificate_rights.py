"""Who may deal with certificates: who administers the node, and for accounts of a domain who administers that.

To do more than look they must administer the account itself: a new certificate's private key would be theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sealane.errors import CertificateNotFound
from sealane.node.administration.over_accounts import authorise_over
from sealane.security.accounts import MEMBER_ROLE, Account, domain_of
from sealane.security.ca.records import CertificateRecord
from sealane.security.grants.grants import NODE

if TYPE_CHECKING:
    from sealane.node.session import Session


def certificates_of(domain: str) -> str:
    """What is administered where it is the certificates of a domain's accounts."""
    return f"{domain}/_certificates"


def may_look(session: Session, domain: str | None) -> None:
    """Raise `Forbidden` unless they may see the certificates of this domain; of all, if it is None."""
    session.authorise("admin", NODE if domain is None else certificates_of(domain))


def may_issue(session: Session, name: str, roles: Iterable[str] | None) -> None:
    """Raise `Forbidden` unless they may have a certificate for this account, which would be made with these roles."""
    account = session.node.identity.accounts.find(name)
    if account is None:
        account = Account(name, domain_of(name), frozenset([MEMBER_ROLE] if roles is None else roles), created_us=0)
    may_look(session, account.domain)
    authorise_over(session, account)


def may_see(session: Session, reference: str) -> list[CertificateRecord]:
    """The certificates that are meant. Whoever administers a domain is not told what there is beyond it."""
    try:
        found = session.node.identity.authorities.ledger.find(reference)
    except CertificateNotFound:
        session.authorise("admin", NODE)
        raise
    for record in found:
        own = certificates_of(record.domain)
        theirs = record.usage == "client" and session.may("admin", own)
        session.authorise("admin", own if theirs else NODE)
    return found


def may_change(session: Session, reference: str) -> list[CertificateRecord]:
    """Those that they may renew or revoke: nobody shuts out an account that is more than they administer."""
    found = may_see(session, reference)
    for record in found:
        account = session.node.identity.accounts.find(record.name)
        if record.usage == "client" and account is not None:
            authorise_over(session, account)
    return found
