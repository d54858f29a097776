"""Authorities on values in memory, with a clock that tests move, and what others would send them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.engine.memory import MemoryEngine
from sealane.security.accounts import Accounts
from sealane.security.ca.authorities import Authorities
from sealane.security.ca.issued import Issued
from sealane.security.records import Vault
from sealane.security.settings import CertificateSettings

DAY_US = 24 * 3600 * 1_000_000

Signer = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


@dataclass
class Clock:
    now_us: int = 1_900_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def pass_days(self, days: float) -> None:
        self.now_us += round(days * DAY_US)


@dataclass
class Office:
    """What a node has: accounts, authorities, and a place to keep them."""

    authorities: Authorities
    accounts: Accounts
    clock: Clock
    engine: MemoryEngine
    settings: CertificateSettings = field(default_factory=CertificateSettings)

    async def reopened(self) -> Office:
        """The same after a restart."""
        return await _loaded(self.engine, self.clock, self.settings)


async def office(settings: CertificateSettings | None = None, clock: Clock | None = None) -> Office:
    """With a root authority."""
    clock = clock or Clock()
    made = await _loaded(MemoryEngine(clock), clock, settings or CertificateSettings())
    await made.authorities.init()
    return made


async def _loaded(engine: MemoryEngine, clock: Clock, settings: CertificateSettings) -> Office:
    vault = Vault(engine, None, clock, os.urandom)
    accounts = Accounts(vault)
    authorities = Authorities(vault, accounts, settings)
    await accounts.load()
    await authorities.load()
    return Office(authorities, accounts, clock, engine, settings)


def parsed(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate.encode())


def der(issued: Issued) -> bytes:
    return parsed(issued).public_bytes(Encoding.DER)


def request(key: Signer, name: str = "whoever") -> x509.CertificateSigningRequest:
    """A request that asks for more than anybody should get."""
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("bank.example")]), critical=False)
        .sign(key, algorithm)
    )


def pem(made: x509.CertificateSigningRequest) -> str:
    return made.public_bytes(Encoding.PEM).decode()


def key_pem(key: Signer) -> str:
    none = serialization.NoEncryption()
    return key.private_bytes(Encoding.PEM, serialization.PrivateFormat.PKCS8, none).decode()
