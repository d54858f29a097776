"""Tokens of someone else: OAuth 2 and OpenID Connect. Their subjects have no account here; roles come by claims."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from sealane.errors import InvalidName, Unauthenticated
from sealane.message import Limits, check_name
from sealane.message.names import DEFAULT_DOMAIN
from sealane.security.credentials.bearer_tokens import checked_claims, header_of
from sealane.security.credentials.key_sets import KeySet
from sealane.security.credentials.tokens import CREDENTIAL
from sealane.security.principals import Principal
from sealane.security.settings import TokenSettings

LEEWAY_SECONDS = 30.0
"""How far the issuer's clock may be from the node's."""
ROLES_MAX = 100
"""Roles that one token may claim."""
SUBJECT_CHARS_MAX = 128
"""Of a token's subject: as for accounts."""

_SUBJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@+|-]*[A-Za-z0-9])?", re.ASCII)


class ExternalTokens:
    """The tokens of one issuer."""

    def __init__(self, settings: TokenSettings, clock: Callable[[], int], administers: Callable[[str], bool]) -> None:
        """`administers` tells whether a role administers this node: those cannot be claimed."""
        assert settings.keys is not None
        assert settings.issuer is not None, "they are set together"
        self.issuer = settings.issuer
        self._settings = settings
        self._clock = clock
        self._administers = administers
        self._keys = KeySet(settings.keys, clock)

    async def principal(self, token: str) -> Principal:
        """Who comes in by a token that says to be of this issuer. Raises `Unauthenticated`."""
        found = await self._keys.find(str(header_of(token).get("kid")))
        if found is None:
            raise Unauthenticated("this token is not valid here: its signature or its issuer is wrong")
        claims = checked_claims(
            token,
            found.key,
            algorithms=found.algorithms,
            issuer=self.issuer,
            audience=self._settings.audience,
            now_us=self._clock(),
            leeway_seconds=LEEWAY_SECONDS,
        )
        credential = CREDENTIAL + hashlib.sha256(token.encode()).hexdigest()[:32]
        return Principal(
            f"{self._settings.name}:{_subject(claims)}",
            self._domain(claims),
            self._roles(claims),
            "token",
            credential,
            credential,
            round(claims["exp"] * 1_000_000),
        )

    def _domain(self, claims: dict[str, Any]) -> str:
        domain = claims.get(self._settings.domain_claim, DEFAULT_DOMAIN)
        try:
            check_name("domain", domain, Limits())
        except InvalidName:
            problem = f"this token's {self._settings.domain_claim!r} names no domain that there can be"
            raise Unauthenticated(problem) from None
        return str(domain)

    def _roles(self, claims: dict[str, Any]) -> frozenset[str]:
        claimed = claims.get(self._settings.roles_claim, [])
        if isinstance(claimed, str):
            claimed = claimed.split()  # As OAuth writes scopes.
        if not isinstance(claimed, list) or not all(isinstance(role, str) for role in claimed):
            raise Unauthenticated(f"this token's {self._settings.roles_claim!r} is no list of roles")
        if len(claimed) > ROLES_MAX:
            raise Unauthenticated(f"this token claims {len(claimed)} roles, the limit is {ROLES_MAX}")
        return frozenset(role for role in claimed if not self._administers(role))


def _subject(claims: dict[str, Any]) -> str:
    subject = claims["sub"]
    if not isinstance(subject, str) or len(subject) > SUBJECT_CHARS_MAX or _SUBJECT.fullmatch(subject) is None:
        raise Unauthenticated("this token's 'sub' is no name that a principal can have")
    return subject
