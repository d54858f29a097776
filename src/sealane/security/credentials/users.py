"""Users: people who come in by a password. Each belongs to the account of the same name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from sealane.errors import AlreadyExists, UserNotFound
from sealane.security.accounts import Accounts
from sealane.security.credentials.passwords import Passwords, check_password
from sealane.security.records import Vault
from sealane.security.settings import UserSettings


class User(msgspec.Struct, frozen=True):
    """What the node knows of a user. What is kept of the password is in no `repr`."""

    name: str
    password: str
    """Its Argon2id hash."""
    created_us: int
    changed_us: int
    """When the password was set: tokens that are older are over."""
    failures: int = 0
    """Wrong passwords since the last right one."""
    locked_until_us: int = 0
    locked: bool = False
    """By an administrator, until one takes it back."""

    def __repr__(self) -> str:
        return f"User(name={self.name!r}, locked={self.locked})"


class Users:
    """Every user, in memory; changes, failures too, are durable on return."""

    def __init__(self, vault: Vault, accounts: Accounts, settings: UserSettings) -> None:
        self._records = vault.records("user", User)
        self._clock = vault.clock
        self._accounts = accounts
        self._settings = settings
        self._passwords = Passwords(vault.entropy)
        self._checking: dict[str, asyncio.Lock] = {}
        """By the name of a user who is there: one password at a time, so that none passes uncounted."""

    async def load(self) -> None:
        await self._records.load()

    def find(self, name: str) -> User | None:
        return self._records.get(name)

    def get(self, name: str) -> User:
        """Raises `UserNotFound`."""
        user = self._records.get(name)
        if user is None:
            raise UserNotFound(name, "`sealane user list` tells which there are")
        return user

    def all(self) -> list[User]:
        return [user for _, user in self._records]

    def is_locked(self, user: User) -> bool:
        return user.locked or user.locked_until_us > self._clock()

    # --- changing -----------------------------------------------------------------------------------------------------

    async def create(
        self, name: str, password: str, *, domain: str | None = None, roles: Iterable[str] | None = None
    ) -> User:
        """A new user, and its account if that is new. Raises `AlreadyExists`."""
        check_password(password)
        if name in self._records:
            raise AlreadyExists("user", name, "`sealane user password` changes the password")
        await self._accounts.ensure(name, domain=domain, roles=roles)
        kept = await self._passwords.hashed(password)
        now = self._clock()
        return await self._keep(User(name, kept, now, now))

    async def change_password(self, name: str, password: str) -> User:
        """It ends a lock-out after failures too; what an administrator has locked stays so."""
        check_password(password)
        self.get(name)
        kept = await self._passwords.hashed(password)
        async with self._turn(name):
            now = self._clock()
            user = self.get(name)
            return await self._keep(
                msgspec.structs.replace(user, password=kept, changed_us=now, failures=0, locked_until_us=0)
            )

    async def lock(self, name: str) -> User:
        async with self._turn(name):
            return await self._keep(msgspec.structs.replace(self.get(name), locked=True))

    async def unlock(self, name: str) -> User:
        """Whoever locked it: an administrator, or failures."""
        async with self._turn(name):
            user = self.get(name)
            return await self._keep(msgspec.structs.replace(user, locked=False, failures=0, locked_until_us=0))

    async def remove(self, name: str) -> None:
        """The account stays, with its other credentials."""
        async with self._turn(name):
            self.get(name)
            await self._records.remove(name)
        self._checking.pop(name, None)

    async def _keep(self, user: User) -> User:
        await self._records.put(user.name, user)
        return user

    # --- checking -----------------------------------------------------------------------------------------------------

    async def check(self, name: str, password: str) -> bool:
        """Whether this user may come in by this password now. How long it takes tells nothing of why not."""
        if name not in self._records:
            return await self._passwords.matches(password, None)
        async with self._turn(name):
            user = self._records.get(name)
            if user is None or self.is_locked(user):
                return await self._passwords.matches(password, None)
            if not await self._passwords.matches(password, user.password):
                await self._keep(self._failed(user))
                return False
            if user.failures:
                await self._keep(msgspec.structs.replace(user, failures=0, locked_until_us=0))
            return True

    def _failed(self, user: User) -> User:
        failures = user.failures + 1
        if failures < self._settings.failures_max:
            return msgspec.structs.replace(user, failures=failures)
        # After the lock-out there are as many tries again: the count begins anew.
        until = self._clock() + round(self._settings.lockout_seconds * 1_000_000)
        return msgspec.structs.replace(user, failures=0, locked_until_us=until)

    def _turn(self, name: str) -> asyncio.Lock:
        return self._checking.setdefault(name, asyncio.Lock())
