"""Certificates (DER) that clients show."""

from __future__ import annotations

import random
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.errors import Unauthenticated
from tests.fuzz.known_identities import known
from tests.fuzz.mutation import INTERESTING, mutate
from tests.fuzz.target import Target

_KNOWN = known()
_ISSUED = x509.load_pem_x509_certificate(_KNOWN.certificate.certificate.encode())
SEEDS = (_ISSUED.public_bytes(Encoding.DER),)
_WORDS: tuple[bytes, ...] = (
    *INTERESTING,
    *(
        bytes.fromhex(word)
        for word in ("3000", "020100", "a003020102", "a003020109", "0500", "3080", "0000", "30820100")
    ),
    *(bytes.fromhex(word) for word in ("06082a8648ce3d040303", "06092a864886f70d01010b", "06032b6570", "0603551d11")),
)
"""Pieces of DER: empty sequences, versions, indefinite lengths, and the names of algorithms and extensions."""


def check(data: bytes) -> bool:
    try:
        principal = _KNOWN.identity.authorities.principal(data)
    except Unauthenticated:
        return False
    assert principal.name == "machine"
    return True


def spoil(data: bytes, choose: random.Random) -> bytes:
    return mutate(data, choose, words=_WORDS)


TARGET: Any = Target("certificates", SEEDS, check, spoil)
