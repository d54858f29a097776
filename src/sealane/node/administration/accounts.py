"""`account.*`: whom the node knows, by whatever credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import AlreadyExists
from sealane.node.administration.api_keys import NoArguments, wanted_account
from sealane.node.administration.over_accounts import authorise_list, authorise_over, sees
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.accounts import Account
from sealane.security.principals import Principal

if TYPE_CHECKING:
    from sealane.node.session import Session


class OneAccount(msgspec.Struct):
    name: str


class CreateAccount(msgspec.Struct):
    name: str
    domain: str | None = None
    roles: list[str] | None = None
    """A member, if nobody says otherwise."""


class ChangeRoles(msgspec.Struct):
    name: str
    roles: list[str]


async def _list(session: Session, asked: NoArguments, progress: Progress) -> list[dict[str, Any]]:
    authorise_list(session)
    return [_told(session, each) for each in session.node.identity.accounts.all() if sees(session, each.domain)]


async def _show(session: Session, asked: OneAccount, progress: Progress) -> dict[str, Any]:
    authorise_list(session)
    account = session.node.identity.accounts.get(asked.name)
    authorise_over(session, account)
    grants = session.node.identity.grants.of(Principal(account.name, account.domain, account.roles))
    return {
        **_told(session, account),
        "grants": [{"subject": each.subject, "action": each.action, "pattern": each.pattern} for each in grants],
    }


async def _create(session: Session, asked: CreateAccount, progress: Progress) -> dict[str, Any]:
    """An account without credentials: somebody comes by it who is known otherwise, or gets a credential later."""
    accounts = session.node.identity.accounts
    authorise_over(session, wanted_account(session, asked.name, asked.domain, asked.roles))
    if accounts.find(asked.name) is not None:
        raise AlreadyExists("account", asked.name, "`sealane account roles` and `sealane account disable` change it")
    account = await accounts.ensure(asked.name, domain=asked.domain, roles=asked.roles)
    await session.note("account.create", asked.name, {"roles": " ".join(sorted(account.roles))})
    return _told(session, account)


async def _disable(session: Session, asked: OneAccount, progress: Progress) -> dict[str, Any]:
    """Whoever is inside by any credential of it is shown out."""
    account = await _changed(session, asked.name, disabled=True)
    cut = session.node.entrances.show_out(lambda who: who.name == asked.name, "this account was disabled")
    await session.note("account.disable", asked.name)
    return {**_told(session, account), "connections": cut}


async def _enable(session: Session, asked: OneAccount, progress: Progress) -> dict[str, Any]:
    account = await _changed(session, asked.name, disabled=False)
    await session.note("account.enable", asked.name)
    return _told(session, account)


async def _roles(session: Session, asked: ChangeRoles, progress: Progress) -> dict[str, Any]:
    """Whoever is inside comes in anew, with these roles."""
    before = _authorised(session, asked.name)
    authorise_over(session, msgspec.structs.replace(before, roles=frozenset(asked.roles)))
    account = await session.node.identity.accounts.change(asked.name, roles=asked.roles)
    if account.roles != before.roles:
        why = "the roles of this account were changed: connect again"
        session.node.entrances.show_out(lambda who: who.name == asked.name, why)
    await session.note("account.roles", asked.name, {"roles": " ".join(sorted(account.roles))})
    return _told(session, account)


def _authorised(session: Session, name: str) -> Account:
    authorise_list(session)
    account = session.node.identity.accounts.get(name)
    authorise_over(session, account)
    return account


async def _changed(session: Session, name: str, *, disabled: bool) -> Account:
    _authorised(session, name)
    return await session.node.identity.accounts.change(name, disabled=disabled)


def _told(session: Session, account: Account) -> dict[str, Any]:
    identity = session.node.identity
    return {
        "name": account.name,
        "domain": account.domain,
        "roles": sorted(account.roles),
        "disabled": account.disabled,
        "created_us": account.created_us,
        "user": identity.users.find(account.name) is not None,
        "keys": [key.id for key in identity.api_keys.all() if key.account == account.name and key.revoked_us is None],
    }


COMMANDS_OF_ACCOUNTS: Commands = {
    "account.create": Command(CreateAccount, _create, "notes"),
    "account.list": Command(NoArguments, _list, "reads"),
    "account.show": Command(OneAccount, _show, "reads"),
    "account.disable": Command(OneAccount, _disable, "notes"),
    "account.enable": Command(OneAccount, _enable, "notes"),
    "account.roles": Command(ChangeRoles, _roles, "notes"),
}
