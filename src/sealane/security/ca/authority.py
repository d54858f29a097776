"""One certificate authority: a private key, a certificate that it signed for itself, and what it signs for others.

What it issues passes strict X.509 verification (`ssl.VERIFY_X509_STRICT`, the default from Python 3.13 on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from sealane.security.ca.keys import (
    AuthorityKey,
    CertifiedKey,
    new_authority_key,
    private_der,
    read_private_der,
)
from sealane.security.ca.moments import DAY_US, SECOND_US, to_us, to_utc, whole_seconds
from sealane.security.ca.names import account_name, distinguished, host_names, new_serial
from sealane.security.foreign_bytes import UNREADABLE
from sealane.security.settings import KeyType

BACKDATED_US = 300 * SECOND_US
"""Certificates begin this long ago: the clocks of others may be late by as much."""

Usage = Literal["client", "server"]
Entropy = Callable[[int], bytes]

_PURPOSES = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a certificate is to say."""

    name: str
    key: CertifiedKey
    usage: Usage
    names: Sequence[str]
    """Host names and addresses, of a server."""
    days: float


class Authority:
    """Made by `create`, or by `read` from what `written` gave. Its key appears in no `repr`."""

    def __init__(self, key: AuthorityKey, certificate: x509.Certificate) -> None:
        self._key = key
        self.certificate = certificate

    @classmethod
    def create(cls, name: str, *, key_type: KeyType, days: float, now_us: int, entropy: Entropy) -> Authority:
        """Takes seconds for RSA: not for an event loop."""
        key = new_authority_key(key_type)
        public = key.public_key()
        subject = distinguished(name)
        builder = (
            _builder(subject, subject, public, now_us, now_us + round(days * DAY_US), entropy)
            # It signs for clients and servers, and makes no authorities below itself.
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .add_extension(_key_identifier(public), critical=False)
        )
        return cls(key, builder.sign(key, hashes.SHA384()))

    @classmethod
    def read(cls, key_der: bytes, certificate_der: bytes) -> Authority:
        return cls(read_private_der(key_der), x509.load_der_x509_certificate(certificate_der))

    def written(self) -> tuple[bytes, bytes]:
        """Its private key and its certificate, in DER: to be sealed before they are kept."""
        return private_der(self._key), self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def not_after_us(self) -> int:
        return to_us(self.certificate.not_valid_after_utc)

    def issue(self, wish: Wish, now_us: int, entropy: Entropy) -> x509.Certificate:
        """A certificate that ends after `wish.days`, or with the authority's own if that is earlier."""
        subject = distinguished(wish.name)
        # Up to a whole second: nobody gets less than was asked for.
        until_us = now_us + int(min(wish.days * DAY_US + SECOND_US - 1, self.not_after_us - now_us))
        names = account_name(wish.name) if wish.usage == "client" else host_names((wish.name, *wish.names))
        builder = (
            _builder(subject, self.certificate.subject, wish.key, now_us, until_us, entropy)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([_PURPOSES[wish.usage]]), critical=False)
            .add_extension(names, critical=False)
            .add_extension(_key_identifier(wish.key), critical=False)
            .add_extension(self._authority_identifier(), critical=False)
        )
        return builder.sign(self._key, hashes.SHA384())

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Whether it is signed by this authority's key, not only in its name."""
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (InvalidSignature, TypeError, *UNREADABLE):
            return False
        return True

    def revocation_list(
        self, revoked: Iterable[x509.RevokedCertificate], *, number: int, now_us: int, days: float
    ) -> bytes:
        """A list (CRL, PEM) of what it has taken back, to be replaced by a newer one after `days` at the latest."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(to_utc(whole_seconds(now_us - BACKDATED_US)))
            .next_update(to_utc(whole_seconds(now_us + round(days * DAY_US))))
            .add_extension(x509.CRLNumber(number), critical=False)
            .add_extension(self._authority_identifier(), critical=False)
        )
        for each in revoked:
            builder = builder.add_revoked_certificate(each)
        return builder.sign(self._key, hashes.SHA384()).public_bytes(Encoding.PEM)

    def _authority_identifier(self) -> x509.AuthorityKeyIdentifier:
        own = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: CertifiedKey, now_us: int, until_us: int, entropy: Entropy
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(new_serial(entropy))
        .not_valid_before(to_utc(whole_seconds(now_us - BACKDATED_US)))
        .not_valid_after(to_utc(whole_seconds(until_us)))
    )


def _key_identifier(key: CertifiedKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """An authority's key signs certificates and revocation lists; any other one signs handshakes."""
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
