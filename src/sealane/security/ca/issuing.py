"""Issuing: from what someone asks for to a signed certificate and the record of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.errors import InvalidArgument
from sealane.security.ca.authority import Entropy, Usage, Wish
from sealane.security.ca.issued import Issued
from sealane.security.ca.keys import CertifiedKey, key_hash, new_key, private_pem
from sealane.security.ca.ledger import Ledger
from sealane.security.ca.moments import said, to_us
from sealane.security.ca.names import fingerprint, serial_text
from sealane.security.ca.own_authorities import OwnAuthorities
from sealane.security.ca.records import ROOT, CertificateRecord
from sealane.security.ca.requests import requested_key
from sealane.security.settings import KeyType


class Issuing:
    """Signs, and keeps nothing: a certificate counts once its record is in the ledger."""

    def __init__(
        self,
        authorities: OwnAuthorities,
        ledger: Ledger,
        key_type: KeyType,
        clock: Callable[[], int],
        entropy: Entropy,
    ) -> None:
        self._authorities = authorities
        self._ledger = ledger
        self._key_type = key_type
        self._clock = clock
        self._entropy = entropy

    async def sign(
        self, name: str, domain: str, usage: Usage, *, names: tuple[str, ...], days: float, csr: str | None
    ) -> tuple[Issued, CertificateRecord]:
        """Raises `InvalidArgument`, and `AuthorityNotFound` as long as there is none."""
        if not (math.isfinite(days) and days > 0):
            raise InvalidArgument("days", "must be more than 0")
        issuer = self._authorities.issuer(domain, usage)
        authority = self._authorities.get(issuer)
        now_us = self._clock()
        if authority.not_after_us <= now_us:
            problem = f"{issuer!r} ended on {said(authority.not_after_us)}: nothing that it signs now is valid"
            raise InvalidArgument("authority", problem)
        key, private = await self._key(csr)
        wish = Wish(name, key, usage, names, days)
        certificate = await asyncio.to_thread(authority.issue, wish, now_us, self._entropy)
        record = _record(certificate, wish, domain, issuer, now_us)
        # Servers are the root's: its holder verifies the node by that, whoever has signed for the holder.
        known_by = self._authorities.get(ROOT) if ROOT in self._authorities else authority
        pem = certificate.public_bytes(Encoding.PEM).decode()
        return Issued(name, record.serial, record.fingerprint, pem, private, known_by.pem, record.not_after_us), record

    async def _key(self, csr: str | None) -> tuple[CertifiedKey, str | None]:
        """What is to be certified, and the private key (PEM) if it was made here."""
        if csr is None:
            made = await asyncio.to_thread(new_key, self._key_type)
            return made.public_key(), private_pem(made)
        key = requested_key(csr)
        if self._ledger.is_compromised(key_hash(key)):
            raise InvalidArgument("csr", "its key is one that was revoked as compromised; make another key")
        return key, None


def _record(certificate: x509.Certificate, wish: Wish, domain: str, authority: str, now_us: int) -> CertificateRecord:
    return CertificateRecord(
        serial_text(certificate.serial_number),
        wish.name,
        domain,
        authority,
        fingerprint(certificate.public_bytes(Encoding.DER)),
        key_hash(wish.key),
        wish.usage,
        to_us(certificate.not_valid_before_utc),
        to_us(certificate.not_valid_after_utc),
        now_us,
        tuple(wish.names),
    )
