"""Tokens of the node's own users: what a password is exchanged for, so that nobody needs to keep it.

They are JSON Web Tokens, signed by HMAC-SHA256 under a key that only this node has. Which algorithm may have signed a
token is decided by who says to have issued it, never by what the token says of itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.errors import Unauthenticated
from sealane.security.accounts import Accounts
from sealane.security.credentials.bearer_tokens import checked_claims, header_of
from sealane.security.credentials.users import Users
from sealane.security.principals import Principal
from sealane.security.records import Vault
from sealane.security.settings import UserSettings

ISSUER = "sealane"
AUDIENCE = "sealane"
CREDENTIAL = "token:"
"""In front of a token's id where a principal says what it came in by."""

_ALGORITHM = "HS256"
_SECRET_BYTES = 32


class TokenKey(msgspec.Struct, frozen=True):
    """Signs tokens, until another one does; verifies until the last of them has ended. In no `repr`."""

    id: str
    secret: bytes
    created_us: int
    retired_us: int | None = None
    """Since when another one signs."""

    def __repr__(self) -> str:
        return f"TokenKey(id={self.id!r})"


class Tokens:
    """Issues tokens, and tells whose they are."""

    def __init__(self, vault: Vault, accounts: Accounts, users: Users, settings: UserSettings) -> None:
        self._keys = vault.records("token-key", TokenKey)
        self._clock = vault.clock
        self._entropy = vault.entropy
        self._accounts = accounts
        self._users = users
        self._seconds = settings.token_seconds

    async def load(self) -> None:
        await self._keys.load()

    async def issue(self, name: str) -> tuple[str, int]:
        """A token for a user, who has proved to be that, and when it ends. The first makes the key that signs it."""
        import jwt

        self._users.get(name)
        key = self._signing_key() or await self._new_key()
        now_us = self._clock()
        expires_us = now_us + round(self._seconds * 1_000_000)
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": name,
            "iat": now_us / 1_000_000,
            "exp": expires_us / 1_000_000,
            "jti": self._entropy(16).hex(),
        }
        return jwt.encode(claims, key.secret, algorithm=_ALGORITHM, headers={"kid": key.id}), expires_us

    async def rotate(self) -> str:
        """Sign by a new key from now on. What the old ones have signed stays valid until it ends."""
        now = self._clock()
        for key_id, key in self._keys:
            if key.retired_us is None:
                await self._keys.put(key_id, msgspec.structs.replace(key, retired_us=now))
            elif self._is_over(key):
                await self._keys.remove(key_id)
        return (await self._new_key()).id

    def _signing_key(self) -> TokenKey | None:
        return next((key for _, key in self._keys if key.retired_us is None), None)

    async def _new_key(self) -> TokenKey:
        key = TokenKey(self._entropy(8).hex(), self._entropy(_SECRET_BYTES), self._clock())
        await self._keys.put(key.id, key)
        return key

    def _is_over(self, key: TokenKey) -> bool:
        """Whether the last token that it signed has ended."""
        return key.retired_us is not None and key.retired_us + round(self._seconds * 1_000_000) <= self._clock()

    def principal(self, token: str) -> Principal:
        """Who comes in by a token that says to be of this node. Raises `Unauthenticated`."""
        key = self._keys.get(str(header_of(token).get("kid")))
        if key is None or self._is_over(key):
            raise Unauthenticated("this token is not valid here (any more): log in again")
        claims = checked_claims(
            token, key.secret, algorithms=[_ALGORITHM], issuer=ISSUER, audience=AUDIENCE, now_us=self._clock()
        )
        self._check_user(claims)
        expires_us = round(claims["exp"] * 1_000_000)
        return self._accounts.principal(
            claims["sub"], "token", f"{CREDENTIAL}{claims.get('jti')}", expires_us=expires_us
        )

    def _check_user(self, claims: dict[str, Any]) -> None:
        user = self._users.find(claims["sub"])
        # A lock-out after failures is for whoever guesses passwords; a token is none.
        if user is None or user.locked or round(claims.get("iat", 0) * 1_000_000) < user.changed_us:
            raise Unauthenticated("this token is not valid here (any more): log in again")
