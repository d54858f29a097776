"""Keys (PEM) that messages are sealed for and opened with, as users give them."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sealane.errors import InvalidArgument
from sealane.security.envelopes import PrivateKey, PublicKey
from tests.fuzz.pem import spoil_pem
from tests.fuzz.target import Target

_X25519 = PrivateKey(X25519PrivateKey.from_private_bytes(bytes(range(32))))
_RSA = PrivateKey.generate("rsa-2048")
SEEDS = (
    _X25519.public.pem().encode(),
    _X25519.pem().encode(),
    _RSA.public.pem().encode(),
    _RSA.pem().encode(),
)
OTHER_KIND = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


def check(data: bytes) -> bool:
    taken = False
    try:
        public = PublicKey.from_pem(data)
        taken = True
        assert PublicKey.from_pem(public.pem()) == public
    except InvalidArgument:
        pass
    try:
        private = PrivateKey.from_pem(data)
        taken = True
        assert PrivateKey.from_pem(private.pem()).public == private.public
    except InvalidArgument:
        pass
    return taken


TARGET = Target("recipient_keys", SEEDS, check, spoil_pem)
