"""`user.*` and `token.*`: people with passwords, and the tokens that they get for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import Forbidden, InvalidArgument, Unauthenticated
from sealane.node.administration.api_keys import NoArguments, wanted_account
from sealane.node.administration.over_accounts import authorise_list, authorise_over, sees
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.credentials.users import User
from sealane.security.grants.grants import NODE

if TYPE_CHECKING:
    from sealane.node.session import Session


class CreateUser(msgspec.Struct):
    name: str
    password: str
    roles: list[str] | None = None
    domain: str | None = None


class ChangePassword(msgspec.Struct):
    name: str
    password: str
    current: str | None = None
    """The password until now, for whoever changes their own."""


class OneUser(msgspec.Struct):
    name: str


async def _create(session: Session, asked: CreateUser, progress: Progress) -> dict[str, Any]:
    authorise_over(session, wanted_account(session, asked.name, asked.domain, asked.roles))
    user = await session.node.identity.users.create(asked.name, asked.password, domain=asked.domain, roles=asked.roles)
    await session.note("user.create", asked.name)
    return _told(session, user)


async def _list(session: Session, asked: NoArguments, progress: Progress) -> list[dict[str, Any]]:
    authorise_list(session)
    told = [_told(session, user) for user in session.node.identity.users.all()]
    return [each for each in told if sees(session, each["domain"])]


async def _password(session: Session, asked: ChangePassword, progress: Progress) -> dict[str, Any]:
    """Of others, for administrators; one's own, for whoever knows it."""
    users = session.node.identity.users
    if session.principal.name == asked.name and session.principal.kind in ("user", "token"):
        if asked.current is None:
            raise InvalidArgument("current", "whoever changes their own password gives the one until now too")
        if not await users.check(asked.name, asked.current):
            raise Unauthenticated("the password until now is not right, or the user is locked out for a while")
    else:
        _authorise(session, asked.name)
    user = await users.change_password(asked.name, asked.password)
    _show_out(session, asked.name, "the password was changed: log in again")
    await session.note("user.password", asked.name)
    return _told(session, user)


async def _lock(session: Session, asked: OneUser, progress: Progress) -> dict[str, Any]:
    _authorise(session, asked.name)
    user = await session.node.identity.users.lock(asked.name)
    _show_out(session, asked.name, "this user was locked")
    await session.note("user.lock", asked.name)
    return _told(session, user)


async def _unlock(session: Session, asked: OneUser, progress: Progress) -> dict[str, Any]:
    _authorise(session, asked.name)
    user = await session.node.identity.users.unlock(asked.name)
    await session.note("user.unlock", asked.name)
    return _told(session, user)


async def _remove(session: Session, asked: OneUser, progress: Progress) -> dict[str, Any]:
    """The account stays; `keys` are those that still open it."""
    _authorise(session, asked.name)
    identity = session.node.identity
    await identity.users.remove(asked.name)
    _show_out(session, asked.name, "this user was removed")
    await session.note("user.remove", asked.name)
    left = [key.id for key in identity.api_keys.all() if key.account == asked.name and key.revoked_us is None]
    return {"name": asked.name, "keys": left}


async def _issue(session: Session, asked: NoArguments, progress: Progress) -> dict[str, Any]:
    """For the user who asks. A token is no way to another token: the password is asked for again when it ends."""
    who = session.principal
    if who.kind != "user":
        raise Forbidden(who.name, "issue", "a token", "only who came in by a password gets one")
    token, expires_us = await session.node.identity.tokens.issue(who.name)
    await session.note("token.issue", who.name)
    return {"token": token, "user": who.name, "expires_us": expires_us}


async def _rotate(session: Session, asked: NoArguments, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    key_id = await session.node.identity.tokens.rotate()
    await session.note("token.rotate", NODE, {"id": key_id})
    return {"id": key_id}


def _authorise(session: Session, name: str) -> None:
    """Whether such a user exists is only for administrators to know."""
    authorise_list(session)
    session.node.identity.users.get(name)
    authorise_over(session, session.node.identity.accounts.get(name))


def _show_out(session: Session, name: str, why: str) -> None:
    session.node.entrances.show_out(lambda who: who.name == name and who.kind in ("user", "token"), why)


def _told(session: Session, user: User) -> dict[str, Any]:
    """All but what is kept of the password."""
    identity = session.node.identity
    account = identity.accounts.find(user.name)
    return {
        "name": user.name,
        "domain": account.domain if account is not None else "",
        "roles": sorted(account.roles) if account is not None else [],
        "disabled": account is None or account.disabled,
        "locked": identity.users.is_locked(user),
        "locked_until_us": user.locked_until_us or None,
        "failures": user.failures,
        "created_us": user.created_us,
        "changed_us": user.changed_us,
    }


COMMANDS_OF_USERS: Commands = {
    "user.create": Command(CreateUser, _create, "notes"),
    "user.list": Command(NoArguments, _list, "reads"),
    "user.password": Command(ChangePassword, _password, "notes"),
    "user.lock": Command(OneUser, _lock, "notes"),
    "user.unlock": Command(OneUser, _unlock, "notes"),
    "user.remove": Command(OneUser, _remove, "notes"),
    "token.issue": Command(NoArguments, _issue, "notes"),
    "token.rotate": Command(NoArguments, _rotate, "notes"),
}
