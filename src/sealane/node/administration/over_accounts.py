"""Who may administer an account and its credentials: whoever administers the node, or all that the account may do.

The second half matters: an administrator of one domain could otherwise make a key for an account that is more than they
are themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sealane.errors import Forbidden
from sealane.security.accounts import Account
from sealane.security.grants.grants import NODE, ROLE
from sealane.security.grants.patterns import OWN_DOMAIN
from sealane.security.principals import Principal

if TYPE_CHECKING:
    from sealane.node.session import Session


def accounts_of(domain: str) -> str:
    """What is administered where it is the accounts of a domain."""
    return f"{domain}/_accounts"


def sees(session: Session, domain: str) -> bool:
    """Whether the accounts of this domain are for the session to see."""
    return session.may("admin", accounts_of(domain))


def authorise_list(session: Session) -> None:
    """Raise `Forbidden` for whoever administers neither the node nor their own domain."""
    if not session.may("admin", NODE):
        session.authorise("admin", accounts_of(session.principal.domain))


def authorise_over(session: Session, account: Account) -> None:
    """Raise `Forbidden` unless the session may do as it likes with this account, which need not be there yet."""
    session.authorise("admin", accounts_of(account.domain))
    grants, asking = session.node.identity.grants, session.principal
    if session.may("admin", NODE):
        return
    whom = Principal(account.name, account.domain, account.roles)
    held = grants.of(whom)
    own = f"{account.domain}/"
    for grant in held:
        pattern = grant.pattern
        if pattern.startswith(f"{OWN_DOMAIN}/"):
            pattern = own + pattern.removeprefix(f"{OWN_DOMAIN}/")
        if not grants.may_give(asking, msgspec.structs.replace(grant, pattern=pattern)):
            problem = f"{grant.subject!r} may {grant.action} {grant.pattern!r}, which is more than yours to give"
            raise session.refused(Forbidden(asking.name, "admin", account.name, problem))
    known = {grant.subject for grant in held}
    for role in sorted(account.roles):
        if ROLE + role not in known:
            # Whoever administers the node may make something of it later that is not meant for these.
            problem = f"the role {role!r} has no grants, and only an administrator of the node gives such"
            raise session.refused(Forbidden(asking.name, "admin", account.name, problem))
