"""What an authority hands out."""

from __future__ import annotations

from dataclasses import dataclass, field

from sealane.security.settings import KeyType


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with all that its holder needs. The private key is in no `repr`, and nowhere else any more."""

    name: str
    serial: str
    fingerprint: str
    """SHA-256 in hex: the client's id."""
    certificate: str
    """PEM."""
    key: str | None = field(repr=False)
    """PEM, PKCS 8; None if the holder made it and sent a request."""
    ca: str
    """PEM of the authority by which its holder knows the node."""
    not_after_us: int


@dataclass(frozen=True, slots=True)
class AuthorityInfo:
    name: str
    """`root`, or `domain:` and the domain."""
    domain: str | None
    key_type: KeyType
    certificate: str
    """PEM."""
    fingerprint: str
    not_before_us: int
    not_after_us: int
