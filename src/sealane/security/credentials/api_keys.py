"""API keys: secrets of programs. Each belongs to an account, and may be narrower than what the account may do.

What the node keeps to check a key is the secret itself, since it verifies signatures by it; it is sealed under the
master key, so that a stolen database alone can neither sign nor log in.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from sealane.errors import InvalidArgument, KeyNotFound, Unauthenticated
from sealane.security.accounts import Accounts
from sealane.security.credentials.key_text import ID_CHARS, SECRET_BYTES, ApiKeyText
from sealane.security.grants.patterns import OWN_DOMAIN, check_pattern
from sealane.security.principals import Action, Principal
from sealane.security.records import Vault

LABEL_CHARS_MAX = 200
"""A key's label: a line that says what it is for."""
ALLOWS_MAX = 100
"""Permissions that one key may list; an account of its own is clearer beyond that."""
CREDENTIAL = "key:"
"""In front of a key's id where a principal says what it came in by."""

Allowed = tuple[Action, str]
"""An action, and a pattern as in grants."""


class ApiKey(msgspec.Struct, frozen=True):
    """What the node knows of a key. The secret is in no `repr`."""

    id: str
    account: str
    secret: bytes
    """Empty once the key was revoked: nothing can be checked against it any more."""
    created_us: int
    expires_us: int | None = None
    revoked_us: int | None = None
    label: str = ""
    allows: tuple[Allowed, ...] = ()
    """What it may do of all that its account may; empty: all of it."""

    def __repr__(self) -> str:
        return f"ApiKey(id={self.id!r}, account={self.account!r})"


def read_allowed(text: str) -> Allowed:
    """`publish:orders*` as it is written on a command line. A bare name is in the account's own domain."""
    action, _, pattern = text.partition(":")
    try:
        known = msgspec.convert(action, Action)
    except msgspec.ValidationError:
        problem = f"{text!r} does not begin with publish, consume, manage or admin and a colon: 'publish:orders*'"
        raise InvalidArgument("allow", problem) from None
    full = pattern if "/" in pattern else f"{OWN_DOMAIN}/{pattern}"
    check_pattern(full)
    return known, full


class ApiKeys:
    """Every key, in memory; changes are durable on return."""

    def __init__(self, vault: Vault, accounts: Accounts) -> None:
        self._records = vault.records("key", ApiKey)
        self._clock = vault.clock
        self._entropy = vault.entropy
        self._accounts = accounts

    async def load(self) -> None:
        await self._records.load()

    def find(self, key_id: str) -> ApiKey | None:
        return self._records.get(key_id)

    def get(self, key_id: str) -> ApiKey:
        """Raises `KeyNotFound`."""
        key = self._records.get(key_id)
        if key is None:
            raise KeyNotFound(key_id, "`sealane key list` tells which there are")
        return key

    def all(self) -> list[ApiKey]:
        return [key for _, key in self._records]

    async def create(
        self,
        account: str,
        *,
        allows: Sequence[Allowed] = (),
        expires_us: int | None = None,
        label: str = "",
        domain: str | None = None,
        roles: Iterable[str] | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key for an account, which is made if it is new, and its text: it is not to be had again later."""
        if len(label) > LABEL_CHARS_MAX or not label.isprintable():
            raise InvalidArgument("label", f"it is one line of at most {LABEL_CHARS_MAX} characters")
        if len(allows) > ALLOWS_MAX:
            raise InvalidArgument("allow", f"{len(allows)} permissions are more than the {ALLOWS_MAX} of one key")
        now = self._clock()
        if expires_us is not None and expires_us <= now:
            raise InvalidArgument("expires", "that moment is over already")
        await self._accounts.ensure(account, domain=domain, roles=roles)
        text = ApiKeyText(self._new_id(), self._entropy(SECRET_BYTES))
        key = ApiKey(text.id, account, text.secret, now, expires_us, None, label, tuple(allows))
        await self._records.put(key.id, key)
        return key, text.written()

    def _new_id(self) -> str:
        return base64.b32encode(self._entropy(8)).decode().lower()[:ID_CHARS]

    async def revoke(self, key_id: str) -> ApiKey:
        """It is over for good. Who is inside by it is for the caller to show out."""
        key = self.get(key_id)
        if key.revoked_us is None:
            key = msgspec.structs.replace(key, revoked_us=self._clock(), secret=b"")
            await self._records.put(key_id, key)
        return key

    def principal(self, key: ApiKey) -> Principal:
        """Who comes in by this key, of which the secret was shown. Raises `Unauthenticated` if it is over."""
        if key.revoked_us is not None:
            raise Unauthenticated("this API key was revoked")
        if key.expires_us is not None and key.expires_us <= self._clock():
            raise Unauthenticated("this API key has expired: ask for a new one (`sealane key create`)")
        known = self._accounts.principal(key.account, "key", CREDENTIAL + key.id, expires_us=key.expires_us)
        return replace(known, narrowed=key.allows)

    def secret_of(self, principal: Principal) -> bytes:
        """By what a principal signs that came in by a key. Raises `Unauthenticated` if the key is over by now."""
        key = self._records.get(principal.credential.removeprefix(CREDENTIAL))
        if key is None or key.revoked_us is not None:
            raise Unauthenticated("this API key was revoked")
        return key.secret
