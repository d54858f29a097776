"""Key pairs of authorities and of those they certify: made, written, and judged."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from sealane.errors import InvalidArgument
from sealane.security.settings import KeyType

RSA_BITS_MIN = 2_048
"""Fewer can be broken."""
RSA_BITS_MAX = 8_192
"""More make each handshake slow, and nobody safer."""
RSA_EXPONENT_MIN = 65_537
"""Smaller ones have a history of broken signatures."""

_RSA_AUTHORITY_BITS = 4_096
_RSA_LEAF_BITS = 3_072
_AUTHORITY_CURVE = ec.SECP384R1()
_LEAF_CURVE = ec.SECP256R1()
"""A leaf's key signs in each handshake: OpenSSL 3.0 takes 0.8 ms for that on P-384, in which a node does nothing else,
and 0.03 ms on P-256. It is strong for longer than any leaf is valid."""
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)

AuthorityKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
CertifiedKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


def new_authority_key(key_type: KeyType) -> AuthorityKey:
    """Takes seconds for RSA: not for an event loop."""
    return _new_key(key_type, _RSA_AUTHORITY_BITS, _AUTHORITY_CURVE)


def new_key(key_type: KeyType) -> AuthorityKey:
    """For a client or a server. Takes up to a second for RSA: not for an event loop."""
    return _new_key(key_type, _RSA_LEAF_BITS, _LEAF_CURVE)


def _new_key(key_type: KeyType, rsa_bits: int, curve: ec.EllipticCurve) -> AuthorityKey:
    if key_type == "rsa-4096":
        return rsa.generate_private_key(RSA_EXPONENT_MIN, rsa_bits)
    return ec.generate_private_key(curve)


def private_pem(key: AuthorityKey) -> str:
    """PKCS 8, in the clear: for its owner alone."""
    return _private(key, serialization.Encoding.PEM).decode()


def private_der(key: AuthorityKey) -> bytes:
    return _private(key, serialization.Encoding.DER)


def _private(key: AuthorityKey, encoding: serialization.Encoding) -> bytes:
    return key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def read_private_der(der: bytes) -> AuthorityKey:
    key = serialization.load_der_private_key(der, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey), "an authority's key is one of ours"
    return key


def key_hash(key: CertifiedKey) -> str:
    """By which a public key is recognised: SHA-256 of it in hex."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def check_strength(key: object) -> CertifiedKey:
    """The key, if it is strong enough to be certified and one that TLS here can use. Raises `InvalidArgument`."""
    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            limits = f"RSA keys have {RSA_BITS_MIN:,} to {RSA_BITS_MAX:,}"
            raise InvalidArgument("csr", f"its RSA key has {key.key_size:,} bits; {limits}")
        if key.public_numbers().e < RSA_EXPONENT_MIN:
            raise InvalidArgument("csr", f"its RSA key's exponent is less than {RSA_EXPONENT_MIN:,}; make another key")
        return key
    if isinstance(key, ec.EllipticCurvePublicKey):
        if not isinstance(key.curve, _CURVES):
            raise InvalidArgument("csr", f"its key is on the curve {key.curve.name}; take P-256, P-384 or P-521")
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    raise InvalidArgument("csr", "its key is of a kind that TLS has no use for; take ECDSA (P-384), Ed25519 or RSA")
