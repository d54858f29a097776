"""What certificates say of whom they are for, and what they are known by."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sealane.errors import InvalidArgument, InvalidName
from sealane.security.accounts import check_account_name
from sealane.security.foreign_bytes import UNREADABLE

COMMON_NAME_CHARS_MAX = 64
"""What X.509 lets a common name have."""
HOST_NAME_CHARS_MAX = 253
"""What DNS lets a name have."""
SERIAL_BYTES = 20
"""The most that X.509 allows; all of it random, so that no serial can be guessed or comes twice."""

_HOST = re.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_ORGANISATION = "Sealane"
_ACCOUNT = "urn:sealane:account:"


def check_common_name(name: str) -> None:
    """Raise `InvalidName` unless a certificate may be for it: it becomes the name of files too."""
    check_account_name(name)
    if len(name) > COMMON_NAME_CHARS_MAX:
        raise InvalidName("certificate", name, f"a certificate's name has at most {COMMON_NAME_CHARS_MAX} characters")


def distinguished(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def account_name(name: str) -> x509.SubjectAlternativeName:
    """What a client's certificate is for: an account, which is no host that anybody could be at."""
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(_ACCOUNT + name)])


def host_names(names: Iterable[str]) -> x509.SubjectAlternativeName:
    """What a server's certificate is for: DNS names and addresses. Raises `InvalidArgument` for what is neither."""
    return x509.SubjectAlternativeName([_host_name(name) for name in dict.fromkeys(names)])


def _host_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if len(name) > HOST_NAME_CHARS_MAX or ".." in name or _HOST.fullmatch(name) is None:
            raise InvalidArgument("names", f"{name[:HOST_NAME_CHARS_MAX]!r} is no host name and no address") from None
        return x509.DNSName(name)


def new_serial(entropy: Callable[[int], bytes]) -> int:
    """Positive, and at most `SERIAL_BYTES` long once it is written with a sign."""
    while True:
        serial = int.from_bytes(entropy(SERIAL_BYTES)) >> 1
        if serial:
            return serial


def serial_text(serial: int) -> str:
    """How a serial is written everywhere: hex, always of the same length."""
    return f"{serial:0{2 * SERIAL_BYTES}x}"


def fingerprint(der: bytes) -> str:
    """SHA-256 of a certificate in hex: what its holder is known by as a client."""
    return hashlib.sha256(der).hexdigest()


def fingerprint_of(pem: str) -> str:
    """The same of a certificate in PEM; empty for what is none, which is no certificate's."""
    try:
        return fingerprint(x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER))
    except UNREADABLE:
        return ""
