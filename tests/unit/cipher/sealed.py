"""Keys that tests of the sender and the receiver share: making one takes a while."""

from __future__ import annotations

from functools import cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from sealane.cipher.hybrid import encrypt
from sealane.cipher.keys import new_key
from sealane.wire.cipher.message import EncryptedMessage


@cache
def key(number: int = 0, bits: int = 2048) -> RSAPrivateKey:
    """The same for the same number."""
    return new_key(bits)


def message(message_id: str, body: bytes = b"hello") -> EncryptedMessage:
    """For `key()`."""
    return encrypt(body, message_id, key().public_key())
