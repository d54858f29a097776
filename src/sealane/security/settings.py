"""What can be said about identities: certificates, users, tokens, the audit log, quotas."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from sealane.errors import InvalidArgument

KeyType = Literal["ecdsa-p384", "rsa-4096"]


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """`security.certificates.*`: the node's own certificate authority."""

    key_type: KeyType = "ecdsa-p384"
    """Of an authority's key, and of the keys that it makes for others (on P-256, or RSA of 3,072 bits)."""
    authority_days: int = 3_650
    days: int = 365
    """How long a client's certificate is valid, unless it is issued for another time."""
    renew_days: int = 30
    """From so many days before its end a certificate may be renewed; the node renews its own, and warns of others."""
    names: str | None = None
    """Names and addresses by which clients reach this node, with commas between them, beside its host name and those of
    loopback: its own certificate is for these."""

    def __post_init__(self) -> None:
        for name in ("authority_days", "days", "renew_days"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"security.certificates.{name}", "must be at least 1")


@dataclass(frozen=True, slots=True)
class UserSettings:
    """`security.users.*`: people with passwords."""

    failures_max: int = 5
    """Wrong passwords in a row after which a user is locked out: guessing takes years then, a typing error seconds."""
    lockout_seconds: float = 900.0
    token_seconds: float = 1_800.0
    """How long a token is valid that a user gets for a password."""

    def __post_init__(self) -> None:
        if self.failures_max < 1:
            raise InvalidArgument("security.users.failures_max", "must be at least 1")
        for name in ("lockout_seconds", "token_seconds"):
            if getattr(self, name) <= 0:
                raise InvalidArgument(f"security.users.{name}", "must be more than 0")


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """`security.tokens.*`: bearer tokens that someone else issues (OAuth 2, OpenID Connect), if `keys` is set."""

    name: str = "external"
    """In front of the principals' names: the subject `anna` is the principal `external:anna`."""
    issuer: str | None = None
    """What the tokens' `iss` must say."""
    audience: str = "sealane"
    """What the tokens' `aud` must contain."""
    keys: str | None = None
    """Where the issuer's public keys (JWKS) are: a file, or an https URL."""
    roles_claim: str = "roles"
    """The claim that lists roles; those of this node's administrators cannot be claimed."""
    domain_claim: str = "domain"
    """The claim that names the domain."""

    def __post_init__(self) -> None:
        if (self.keys is None) != (self.issuer is None):
            raise InvalidArgument("security.tokens.issuer", "and security.tokens.keys are set together, or neither")
        if self.issuer == "sealane":
            raise InvalidArgument("security.tokens.issuer", "'sealane' is how the node itself signs; name another one")
        if self.keys is not None and "://" in self.keys and not self.keys.startswith("https://"):
            raise InvalidArgument("security.tokens.keys", "is fetched by https:// only, or read from a file")
        if not self.name.isalnum() or not self.name.isascii() or self.name == "role":
            # `role:…` is how grants call roles: a subject of that name would be one.
            raise InvalidArgument("security.tokens.name", "is letters and digits, and not 'role'")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """`security.audit.*`: who came in, was refused, and changed what."""

    enabled: bool | None = None
    """None: on for a node that `sealane up` runs, and wherever there is an audit log already; off for a broker inside
    another program."""
    retention_seconds: float = 400 * 24 * 3600.0
    """A year and a month: long enough to compare with the year before."""

    def __post_init__(self) -> None:
        if not 0 < self.retention_seconds < math.inf:
            raise InvalidArgument("security.audit.retention_seconds", "must be more than 0")


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """`security.quotas.*`: what each principal, and each domain in all, may do a second. None: as much as it can."""

    principal_messages_per_second: int | None = None
    principal_bytes_per_second: int | None = None
    principal_requests_per_second: int | None = None
    domain_messages_per_second: int | None = None
    domain_bytes_per_second: int | None = None
    domain_requests_per_second: int | None = None
    burst_seconds: float = 2.0
    """So much may be used at once after a pause: this many seconds' worth."""
    connections_per_address_max: int = 1_000
    """Connections from one address, authenticated or not."""
    connections_per_principal_max: int = 1_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidArgument(f"security.quotas.{name}", "must be more than 0; leave it out for no limit")


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """`security.*`."""

    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    users: UserSettings = field(default_factory=UserSettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
