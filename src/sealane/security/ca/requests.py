"""Certificate signing requests: their public key is taken, and nothing else that they ask for."""

from __future__ import annotations

from cryptography import x509

from sealane.errors import InvalidArgument
from sealane.security.ca.keys import CertifiedKey, check_strength
from sealane.security.foreign_bytes import UNREADABLE

REQUEST_CHARS_MAX = 32_768
"""Of a request in PEM: ten times what one with the largest key takes."""


def requested_key(pem: str) -> CertifiedKey:
    """The public key of a request whose sender has shown to hold the private one. Raises `InvalidArgument`.

    Whom a certificate is for and what it is good for is not for the request to say.
    """
    if len(pem) > REQUEST_CHARS_MAX:
        raise InvalidArgument("csr", f"has {len(pem):,} characters, the limit is {REQUEST_CHARS_MAX:,}")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        key = request.public_key()
    except UNREADABLE:
        problem = "is not a certificate signing request in PEM (-----BEGIN CERTIFICATE REQUEST-----)"
        raise InvalidArgument("csr", problem) from None
    # The strength comes first: what a weak key has signed proves nothing.
    strong = check_strength(key)
    if not _is_signed(request):
        raise InvalidArgument("csr", "its signature is not by its own key: it was changed, or put together wrongly")
    return strong


def _is_signed(request: x509.CertificateSigningRequest) -> bool:
    try:
        return request.is_signature_valid
    except UNREADABLE:
        return False
