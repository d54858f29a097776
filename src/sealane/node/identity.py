"""What a node knows of who may come in and what they may do: loaded at its start, asked from memory."""

from __future__ import annotations

from sealane.engine import Engine
from sealane.engine.contract import KeepsSecrets
from sealane.errors import Unauthenticated
from sealane.node.surroundings import Surroundings
from sealane.security.accounts import Accounts
from sealane.security.authentication import Authentication, load_plugins
from sealane.security.authenticators.appointed import AppointedAuthenticator
from sealane.security.authenticators.certificates import CertificateAuthenticator
from sealane.security.authenticators.keys import KeyAuthenticator
from sealane.security.authenticators.tokens import TokenAuthenticator
from sealane.security.authenticators.users import UserAuthenticator
from sealane.security.ca.authorities import Authorities
from sealane.security.credentials.api_keys import CREDENTIAL as KEY_CREDENTIAL
from sealane.security.credentials.api_keys import ApiKeys
from sealane.security.credentials.external_tokens import ExternalTokens
from sealane.security.credentials.tokens import Tokens
from sealane.security.credentials.users import Users
from sealane.security.directory import Directory
from sealane.security.grants.grants import NODE, Grants
from sealane.security.introductions import Authenticator
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quotas
from sealane.security.records import Vault
from sealane.security.settings import SecuritySettings

CREDENTIAL_OVER = "the credential of this connection is over: it was revoked, has expired or its account was disabled"


class Identity:
    """One a node; `load` reads what the engine keeps of it."""

    def __init__(self, engine: Engine, surroundings: Surroundings, settings: SecuritySettings) -> None:
        self.settings = settings
        self.surroundings = surroundings
        seals = engine.sealer if isinstance(engine, KeepsSecrets) else None
        self.vault = vault = Vault(engine, seals, surroundings.clock, surroundings.entropy)
        """Where all of it is kept."""
        self.accounts = Accounts(vault)
        self.authorities = Authorities(vault, self.accounts, settings.certificates)
        self.grants = Grants(vault)
        self.quotas = Quotas(vault, settings.quotas)
        self.directory = Directory(vault)
        self.api_keys = ApiKeys(vault, self.accounts)
        self.users = Users(vault, self.accounts, settings.users)
        self.tokens = Tokens(vault, self.accounts, self.users, settings.users)
        self.authentication = Authentication(
            self._authenticators(), CertificateAuthenticator(self.authorities), AppointedAuthenticator(self.accounts)
        )

    def _authenticators(self) -> list[Authenticator]:
        clock, tokens = self.surroundings.clock, self.settings.tokens
        external = ExternalTokens(tokens, clock, self._administers) if tokens.keys is not None else None
        return [
            KeyAuthenticator(self.api_keys, clock),
            TokenAuthenticator(self.tokens, external),
            UserAuthenticator(self.users, self.accounts),
        ]

    def _administers(self, role: str) -> bool:
        """Whether whoever has this role administers the node."""
        return self.grants.deciding(Principal("", roles=frozenset({role})), "admin", NODE) is not None

    async def load(self) -> None:
        """Read all that the engine keeps of it."""
        await self.accounts.load()
        await self.authorities.load()
        await self.grants.load()
        await self.quotas.load()
        await self.directory.load()
        await self.api_keys.load()
        await self.users.load()
        await self.tokens.load()
        self.authentication.add(load_plugins(self))

    # --- for whoever is inside ----------------------------------------------------------------------------------------

    def is_over(self, principal: Principal) -> bool:
        """Whether what it came in by has ended since: revoked, expired, or its account is disabled or gone.

        Asked with each command and of each connection every second, so it is answered from memory.
        """
        if principal.kind == "local":
            return False
        if principal.expires_us is not None and self.surroundings.clock() >= principal.expires_us:
            return True
        account = self.accounts.find(principal.name)
        if account is None:
            # Whoever comes by a token of someone else's has none here.
            return principal.kind != "token"
        return account.disabled or self._is_revoked(principal)

    def _is_revoked(self, principal: Principal) -> bool:
        if principal.kind == "certificate":
            return self.authorities.is_revoked(principal.credential)
        if principal.kind == "key":
            key = self.api_keys.find(principal.credential.removeprefix(KEY_CREDENTIAL))
            return key is None or key.revoked_us is not None
        return False

    def check(self, principal: Principal) -> None:
        """Raise `Unauthenticated` if what it came in by is over."""
        if self.is_over(principal):
            raise Unauthenticated(CREDENTIAL_OVER)
