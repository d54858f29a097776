"""Certificates for tests: an authority whose certificates can be wrong in any way that a test wants."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
LOOPBACK = ("localhost", "127.0.0.1")


class Certified(NamedTuple):
    """PEM texts."""

    certificate: str
    key: str

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """As the two files `name.crt` and `name.key`, instead of those that were there."""
        written = (directory / f"{name}.crt", directory / f"{name}.key")
        for path, text in zip(written, self, strict=True):
            draft = path.with_suffix(".draft")
            draft.write_text(text)
            draft.rename(path)
        return written


class TestAuthority:
    __test__ = False

    def __init__(self, name: str = "Test Authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        now = datetime.now(UTC)
        builder = _builder(self._name, self._name, self._key, self._key, now - DAY, now + 30 * DAY)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        builder = builder.add_extension(usage, critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return _pem(self.certificate)

    def issue(self, name: str, *, usage: str = "client", names: tuple[str, ...] = (), days: float = 1.0) -> Certified:
        """`days` below 0: it has expired so long ago; from 1,000 on: it is not valid yet."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        start, stop = now - DAY, now + days * DAY
        if days < 0:
            start, stop = now + days * DAY - DAY, now + days * DAY
        elif days >= 1_000:
            start = now + DAY
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if usage == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(_name(name), self._name, key, self._key, start, stop)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        key_usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        builder = builder.add_extension(key_usage, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(each) for each in names]), False)
        return Certified(_pem(builder.sign(self._key, hashes.SHA256())), key_pem(key))

    def server(self, *names: str, days: float = 1.0) -> Certified:
        """A node's, with the authority's own behind it."""
        issued = self.issue("node", usage="server", names=names or LOOPBACK, days=days)
        return Certified(issued.certificate + self.pem, issued.key)


def key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> str:
    sealing: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        sealing = serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealing).decode()


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    start: datetime,
    stop: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(stop)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
