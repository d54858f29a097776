"""Accounts: the principals that this node knows by name, whatever credentials each of them has.

An account may have several certificates, keys and a password; what it may do is said once, for the account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from sealane.errors import AccountNotFound, AlreadyExists, InvalidArgument, InvalidName, Unauthenticated
from sealane.message import Limits, check_name
from sealane.message.names import DEFAULT_DOMAIN
from sealane.security.principals import Kind, Principal
from sealane.security.records import Vault

NAME_CHARS_MAX = 128
"""Of an account: as for topics."""
MEMBER_ROLE = "member"
"""What an account is when nobody says otherwise: it may publish and consume in its own domain."""

ROLES_MAX = 100
"""Roles of one account."""
ROLE_CHARS_MAX = 128
"""Of a role's name: as for accounts."""

_ROLE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]*[A-Za-z0-9])?", re.ASCII)


class Account(msgspec.Struct, frozen=True):
    name: str
    domain: str
    roles: frozenset[str]
    created_us: int
    disabled: bool = False


def check_account_name(name: str) -> None:
    """Raise `InvalidName` unless it may be an account's: it becomes a file's name and part of a certificate too."""
    if len(name) > NAME_CHARS_MAX:
        raise InvalidName("account", name[:NAME_CHARS_MAX] + "…", f"it has more than {NAME_CHARS_MAX} characters")
    if _NAME.fullmatch(name) is None or ".." in name:
        problem = "it begins and ends with a letter or digit; between them '.', '_', '-' and '@' are allowed too"
        raise InvalidName("account", name, problem)


def checked_roles(roles: Iterable[str]) -> frozenset[str]:
    """Raise `InvalidName` for what can be no role's name, `InvalidArgument` for too many."""
    found = frozenset(roles)
    if len(found) > ROLES_MAX:
        raise InvalidArgument("roles", f"{len(found):,} are more than the {ROLES_MAX} that an account may have")
    for role in found:
        if len(role) > ROLE_CHARS_MAX or _ROLE.fullmatch(role) is None:
            problem = f"letters and digits make one, with '.', '_' and '-' between them, {ROLE_CHARS_MAX} at most"
            raise InvalidName("role", role[:ROLE_CHARS_MAX], problem)
    return found


def domain_of(common_name: str) -> str:
    """The domain that a name tells: `client001.example.com` is of `example.com`, `client001` of the default one."""
    return common_name.partition(".")[2] or DEFAULT_DOMAIN


class Accounts:
    """Every account, in memory; changes are durable on return."""

    def __init__(self, vault: Vault) -> None:
        self._records = vault.records("account", Account)
        self._clock = vault.clock

    async def load(self) -> None:
        await self._records.load()

    def get(self, name: str) -> Account:
        """Raises `AccountNotFound`."""
        account = self._records.get(name)
        if account is None:
            raise AccountNotFound(name, "`sealane account list` tells which there are")
        return account

    def find(self, name: str) -> Account | None:
        return self._records.get(name)

    def all(self) -> list[Account]:
        return [account for _, account in self._records]

    async def ensure(self, name: str, *, domain: str | None = None, roles: Iterable[str] | None = None) -> Account:
        """The account of this name, made now if there is none. Raises `AlreadyExists` if it is of another domain.

        Without `domain` it is the one that the name tells; without `roles` a new one is a member. Raises `InvalidName`
        for what cannot be an account's name, domain or role.
        """
        check_account_name(name)
        account = self._records.get(name)
        if account is not None:
            if domain is not None and domain != account.domain:
                raise AlreadyExists("account", name, f"its domain is {account.domain!r}, not {domain!r}")
            return account
        wanted = checked_roles(roles) if roles is not None else frozenset({MEMBER_ROLE})
        home = domain or domain_of(name)
        check_name("domain", home, Limits())  # Those of the system are nobody's home.
        account = Account(name, home, wanted, self._clock())
        await self._records.put(name, account)
        return account

    async def change(self, name: str, *, roles: Iterable[str] | None = None, disabled: bool | None = None) -> Account:
        account = self.get(name)
        if roles is not None:
            account = msgspec.structs.replace(account, roles=checked_roles(roles))
        if disabled is not None:
            account = msgspec.structs.replace(account, disabled=disabled)
        await self._records.put(name, account)
        return account

    async def remove(self, name: str) -> None:
        self.get(name)
        await self._records.remove(name)

    def principal(
        self, name: str, kind: Kind, credential: str, *, client_id: str = "", expires_us: int | None = None
    ) -> Principal:
        """Who comes in by a credential of this account. Raises `Unauthenticated` if it is gone or disabled."""
        account = self._records.get(name)
        if account is None or account.disabled:
            raise Unauthenticated("this credential is not valid here (any more)")
        return Principal(name, account.domain, account.roles, kind, credential, client_id or credential, expires_us)
