"""By a token: of the node's own users, or of another issuer that the settings name."""

from __future__ import annotations

from sealane.errors import Unauthenticated
from sealane.security.credentials.bearer_tokens import claimed_issuer
from sealane.security.credentials.external_tokens import ExternalTokens
from sealane.security.credentials.tokens import ISSUER, Tokens
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal

_SHAPE = 'a token is shown as {"token": "…"}'


class TokenAuthenticator:
    """Implements `Authenticator`. The issuer that a token names decides which keys and algorithms it is checked by."""

    name = "token"

    def __init__(self, own: Tokens, external: ExternalTokens | None) -> None:
        self._own = own
        self._external = external

    async def authenticate(self, shown: Introduction) -> Principal | None:
        if shown.credentials is None or "token" not in shown.credentials:
            return None
        token = shown.credentials["token"]
        if not isinstance(token, str):
            raise Unauthenticated(_SHAPE)
        issuer = claimed_issuer(token)
        if issuer == ISSUER:
            return self._own.principal(token)
        if self._external is not None and issuer == self._external.issuer:
            return await self._external.principal(token)
        raise Unauthenticated("this token is not valid here: its signature or its issuer is wrong")
