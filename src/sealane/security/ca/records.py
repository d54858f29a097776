"""What is kept of authorities and of the certificates they issued; sealed, see `sealane.security.records`."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from sealane.security.ca.authority import Usage
from sealane.security.settings import KeyType

ROOT = "root"
"""The authority of the node itself, and of every domain that has none of its own."""

Reason = Literal[
    "unspecified",
    "key-compromise",
    "affiliation-changed",
    "superseded",
    "cessation-of-operation",
    "privilege-withdrawn",
]
"""Why a certificate was taken back, as X.509 has it."""
REASONS: tuple[Reason, ...] = get_args(Reason)
State = Literal["valid", "not-yet-valid", "expired", "revoked"]


def authority_of_domain(domain: str) -> str:
    """The name of a domain's own authority; a domain may be called `root` too."""
    return f"domain:{domain}"


class AuthorityRecord(msgspec.Struct, frozen=True):
    name: str
    """`root`, or `domain:` and the domain."""
    domain: str | None
    key_type: KeyType
    certificate: bytes
    """DER."""
    private_key: bytes
    """DER, PKCS 8. It is in no `repr`."""
    created_us: int

    def __repr__(self) -> str:
        return f"AuthorityRecord({self.name!r})"


class CertificateRecord(msgspec.Struct, frozen=True):
    serial: str
    """In hex; see `serial_text`."""
    name: str
    domain: str
    """Of the account when it was issued; a server's has none."""
    authority: str
    fingerprint: str
    key_hash: str
    usage: Usage
    not_before_us: int
    not_after_us: int
    issued_us: int
    names: tuple[str, ...] = ()
    """Hosts and addresses, of a server."""
    revoked_us: int | None = None
    reason: Reason | None = None
    replaced_by: str | None = None
    """The serial of the one that renewed it."""

    @property
    def credential(self) -> str:
        """What a principal that came in by it carries."""
        return f"certificate:{self.serial}"

    def state(self, now_us: int) -> State:
        if self.revoked_us is not None:
            return "revoked"
        if now_us < self.not_before_us:
            return "not-yet-valid"
        return "valid" if now_us <= self.not_after_us else "expired"
