"""Wrapping a session key for a recipient's public key, and unwrapping it with the private one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sealane.security.envelopes.envelope import (
    ANY_KEY,
    RSA_2048,
    RSA_2048_SHA1,
    RSA_3072,
    RSA_3072_SHA1,
    RSA_4096,
    RSA_4096_SHA1,
    X25519,
    X25519_ALONE,
    Wrapped,
)
from sealane.security.envelopes.keys import KeyKind, PrivateKey, PublicKey

SESSION_KEY_BYTES = 32
FOREIGN_KEY_BYTES = (16, 24, 32)
"""AES-128 is what CipherMQ's clients take; the others are as good."""

_KINDS: dict[KeyKind, int] = {"x25519": X25519, "rsa-2048": RSA_2048, "rsa-3072": RSA_3072, "rsa-4096": RSA_4096}
_SHA1_KINDS: dict[KeyKind, int] = {
    "rsa-2048": RSA_2048_SHA1,
    "rsa-3072": RSA_3072_SHA1,
    "rsa-4096": RSA_4096_SHA1,
}
_OAEP = OAEP(MGF1(hashes.SHA256()), hashes.SHA256(), label=None)
_OAEP_SHA1 = OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), label=None)  # noqa: S303 - in OAEP it is no weakness
_WRAPPING, _AGREEING = b"sealane wrapping key v1\0", b"sealane agreed key v1\0"
_POINT_BYTES = 32
_NONCE = bytes(12)
"""Of the one thing that each wrapping key ever seals."""


def kinds_of(recipients: Sequence[PublicKey]) -> list[int]:
    """How a session key is wrapped for each of these recipients."""
    if len(recipients) == 1 and recipients[0].algorithm == "x25519":
        return [X25519_ALONE]
    return [_KINDS[recipient.algorithm] for recipient in recipients]


def new_session(recipients: Sequence[PublicKey], entropy: Callable[[int], bytes]) -> tuple[bytes, list[Wrapped]]:
    """A session key that was never used, and as its recipients find it."""
    first = recipients[0]
    if len(recipients) == 1 and isinstance(first.material, X25519PublicKey):
        sender = X25519PrivateKey.generate()
        point = sender.public_key().public_bytes_raw()
        session_key = _agreed(_AGREEING, sender, first.material, point, first.material)
        return session_key, [Wrapped(X25519_ALONE, first.key_id, point)]
    session_key = entropy(SESSION_KEY_BYTES)
    return session_key, [wrap(session_key, recipient) for recipient in recipients]


def wrap(session_key: bytes, recipient: PublicKey) -> Wrapped:
    """The session key for this recipient alone."""
    material = recipient.material
    if isinstance(material, RSAPublicKey):
        return Wrapped(_KINDS[recipient.algorithm], recipient.key_id, material.encrypt(session_key, _OAEP))
    sender = X25519PrivateKey.generate()
    point = sender.public_key().public_bytes_raw()
    sealed = AESGCM(_agreed(_WRAPPING, sender, material, point, material)).encrypt(_NONCE, session_key, None)
    return Wrapped(X25519, recipient.key_id, point + sealed)


def unwrap(wrapped: Wrapped, key: PrivateKey) -> bytes | None:
    """The session key, if it was wrapped for this one; of RSA its length is for the caller to check."""
    kind, key_id, sealed = wrapped
    public = key.public
    if key_id not in (public.key_id, ANY_KEY):
        return None
    try:
        if isinstance(key.material, RSAPrivateKey):
            padding = {_KINDS[public.algorithm]: _OAEP, _SHA1_KINDS[public.algorithm]: _OAEP_SHA1}.get(kind)
            return None if padding is None else key.material.decrypt(sealed, padding)
        if kind not in (X25519, X25519_ALONE) or not isinstance(public.material, X25519PublicKey):
            return None
        point = sealed[:_POINT_BYTES]
        sender = X25519PublicKey.from_public_bytes(point)
        if kind == X25519_ALONE:
            return _agreed(_AGREEING, key.material, sender, point, public.material)
        wrapping_key = _agreed(_WRAPPING, key.material, sender, point, public.material)
        return AESGCM(wrapping_key).decrypt(_NONCE, sealed[_POINT_BYTES:], None)
    except (ValueError, InvalidTag):
        return None


def _agreed(
    label: bytes, own: X25519PrivateKey, other: X25519PublicKey, sender_point: bytes, recipient: X25519PublicKey
) -> bytes:
    """The key that both ends have, for one purpose. Both public keys are in it, so that it is that of no other pair."""
    info = label + sender_point + recipient.public_bytes_raw()
    return HKDF(hashes.SHA256(), SESSION_KEY_BYTES, salt=None, info=info).derive(own.exchange(other))
