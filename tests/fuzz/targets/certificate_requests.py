"""Certificate signing requests (PEM), whose key is taken if it is a strong one."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sealane.errors import InvalidArgument
from sealane.security.ca.keys import check_strength
from sealane.security.ca.names import fingerprint_of
from sealane.security.ca.requests import requested_key
from tests.fuzz.pem import spoil_pem
from tests.fuzz.target import Target

_NAMED = x509.CertificateSigningRequestBuilder().subject_name(
    x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "machine")])
)
_EC = ec.derive_private_key(0x5EA1A4E, ec.SECP384R1())
_ED = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
SEEDS = (
    _NAMED.sign(_EC, hashes.SHA384()).public_bytes(Encoding.PEM),
    _NAMED.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    .sign(_ED, None)
    .public_bytes(Encoding.PEM),
)


def check(data: bytes) -> bool:
    text = data.decode("utf-8", "replace")
    assert fingerprint_of(text) == "" or "CERTIFICATE" in text
    try:
        key = requested_key(text)
    except InvalidArgument:
        return False
    assert check_strength(key) is key
    return True


TARGET = Target("certificate_requests", SEEDS, check, spoil_pem)
