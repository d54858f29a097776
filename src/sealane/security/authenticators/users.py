"""By a user's name and password."""

from __future__ import annotations

from sealane.errors import Unauthenticated
from sealane.security.accounts import NAME_CHARS_MAX, Accounts
from sealane.security.credentials.passwords import PASSWORD_CHARS_MAX
from sealane.security.credentials.users import Users
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal

CREDENTIAL = "user:"
"""In front of a user's name where a principal says what it came in by."""

_REFUSED = "the user or the password is wrong, or the user is locked out for a while after wrong ones"
_SHAPE = 'a user is shown as {"user": "…", "password": "…"}'


class UserAuthenticator:
    """Implements `Authenticator`."""

    name = "user"

    def __init__(self, users: Users, accounts: Accounts) -> None:
        self._users = users
        self._accounts = accounts

    async def authenticate(self, shown: Introduction) -> Principal | None:
        if shown.credentials is None or "user" not in shown.credentials:
            return None
        name, password = shown.credentials["user"], shown.credentials.get("password")
        if not isinstance(name, str) or not isinstance(password, str):
            raise Unauthenticated(_SHAPE)
        if len(name) > NAME_CHARS_MAX or len(password) > PASSWORD_CHARS_MAX:
            raise Unauthenticated(_REFUSED)  # Nobody has such a name or password, which everyone may know.
        if not await self._users.check(name, password):
            raise Unauthenticated(_REFUSED)
        return self._accounts.principal(name, "user", CREDENTIAL + name)
