"""`key.*`: API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.message import check_name
from sealane.node.administration.over_accounts import authorise_list, authorise_over, sees
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.accounts import MEMBER_ROLE, Account, check_account_name, domain_of
from sealane.security.credentials.api_keys import CREDENTIAL, ApiKey, read_allowed

if TYPE_CHECKING:
    from sealane.node.session import Session


class CreateKey(msgspec.Struct):
    account: str
    roles: list[str] | None = None
    """Of the account, if it is new."""
    domain: str | None = None
    allow: list[str] = []
    """`action:pattern`; all that the account may do, if there are none."""
    expires_seconds: float | None = None
    label: str = ""


class NoArguments(msgspec.Struct):
    pass


class RevokeKey(msgspec.Struct):
    id: str


async def _create(session: Session, asked: CreateKey, progress: Progress) -> dict[str, Any]:
    identity = session.node.identity
    authorise_over(session, wanted_account(session, asked.account, asked.domain, asked.roles))
    allows = [read_allowed(text) for text in asked.allow]
    expires_us = None
    if asked.expires_seconds is not None:
        expires_us = identity.surroundings.clock() + round(asked.expires_seconds * 1_000_000)
    key, text = await identity.api_keys.create(
        asked.account, allows=allows, expires_us=expires_us, label=asked.label, domain=asked.domain, roles=asked.roles
    )
    await session.note("key.create", key.account, {"id": key.id})
    return {**_told(key), "key": text}


async def _list(session: Session, asked: NoArguments, progress: Progress) -> list[dict[str, Any]]:
    authorise_list(session)
    identity = session.node.identity
    return [_told(key) for key in identity.api_keys.all() if sees(session, _domain_of(session, key))]


async def _revoke(session: Session, asked: RevokeKey, progress: Progress) -> dict[str, Any]:
    identity = session.node.identity
    authorise_list(session)
    key = identity.api_keys.get(asked.id)
    account = identity.accounts.find(key.account)
    if account is not None:
        authorise_over(session, account)
    key = await identity.api_keys.revoke(asked.id)
    credential = CREDENTIAL + key.id
    cut = session.node.entrances.show_out(lambda who: who.credential == credential, "this API key was revoked")
    await session.note("key.revoke", key.account, {"id": key.id})
    return {**_told(key), "connections": cut}


def wanted_account(session: Session, name: str, domain: str | None, roles: list[str] | None) -> Account:
    """The account as it is, or as it would be made."""
    found = session.node.identity.accounts.find(name)
    if found is not None:
        return found
    check_account_name(name)
    home = domain or domain_of(name)
    check_name("domain", home, session.limits)
    return Account(name, home, frozenset([MEMBER_ROLE] if roles is None else roles), 0)


def _domain_of(session: Session, key: ApiKey) -> str:
    account = session.node.identity.accounts.find(key.account)
    return account.domain if account is not None else domain_of(key.account)


def _told(key: ApiKey) -> dict[str, Any]:
    """All but the secret."""
    return {
        "id": key.id,
        "account": key.account,
        "label": key.label,
        "allow": [f"{action}:{pattern}" for action, pattern in key.allows],
        "created_us": key.created_us,
        "expires_us": key.expires_us,
        "revoked_us": key.revoked_us,
    }


COMMANDS_OF_API_KEYS: Commands = {
    "key.create": Command(CreateKey, _create, "notes"),
    "key.list": Command(NoArguments, _list, "reads"),
    "key.revoke": Command(RevokeKey, _revoke, "notes"),
}
