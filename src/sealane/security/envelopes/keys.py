"""The keys of recipients: who holds the private one opens what was sealed for the public one.

A key is X25519, which is quick and small, or RSA of 2,048 to 4,096 bits, for who has to. It is known by its
fingerprint, the SHA-256 of the public key as every tool writes it (the DER of its SubjectPublicKeyInfo).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Literal, Self, get_args

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sealane.errors import InvalidArgument
from sealane.security.foreign_bytes import UNREADABLE

KeyKind = Literal["x25519", "rsa-2048", "rsa-3072", "rsa-4096"]
KEY_KINDS: tuple[KeyKind, ...] = get_args(KeyKind)
KEY_ID_BYTES = 8
"""Of a fingerprint, where an envelope says whose a wrapped key is: enough to find one's own, and it need not be more,
since whether the key is the right one shows when it opens."""
PEM_BYTES_MAX = 16 << 10
"""A key as text: four times what the longest one takes."""

_FINGERPRINT = "SHA256:"
_RSA_EXPONENT = 65_537
_KNOWN = f"a key here is one of {', '.join(KEY_KINDS)}"


class PublicKey:
    """What is sealed for, as it may go anywhere. Two are equal if they are the same key."""

    __slots__ = ("algorithm", "der", "fingerprint", "key_id", "material")

    algorithm: KeyKind
    fingerprint: str
    """`SHA256:` and the hash in base64, as `ssh-keygen` writes such."""
    key_id: bytes
    der: bytes
    material: X25519PublicKey | RSAPublicKey

    def __init__(self, material: object) -> None:
        """Raises `InvalidArgument` for a key of a kind or size that is not used here."""
        self.material, self.algorithm = _known_public(material)
        self.der = self.material.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        digest = hashlib.sha256(self.der).digest()
        self.fingerprint = _FINGERPRINT + base64.b64encode(digest).decode().rstrip("=")
        self.key_id = digest[:KEY_ID_BYTES]

    @classmethod
    def from_pem(cls, pem: str | bytes) -> Self:
        """From `-----BEGIN PUBLIC KEY-----`. Raises `InvalidArgument` for anything else."""
        data = _checked_pem(pem, "public key")
        if b"PRIVATE KEY" in data:
            raise InvalidArgument("public key", "is a private key: that one stays where it is; give its public half")
        try:
            return cls(serialization.load_pem_public_key(data))
        except UNREADABLE:
            raise InvalidArgument("public key", "is not a public key in PEM (-----BEGIN PUBLIC KEY-----)") from None

    def pem(self) -> str:
        return self.material.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.der == other.der

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __repr__(self) -> str:
        return f"<PublicKey {self.algorithm} {self.fingerprint}>"


class PrivateKey:
    """What opens. Nothing of it is ever shown but the fingerprint of its public half."""

    __slots__ = ("material", "public")

    material: X25519PrivateKey | RSAPrivateKey
    public: PublicKey

    def __init__(self, material: object) -> None:
        if not isinstance(material, X25519PrivateKey | RSAPrivateKey):
            raise InvalidArgument("private key", f"is of another kind; {_KNOWN}")
        self.material = material
        self.public = PublicKey(material.public_key())

    @classmethod
    def generate(cls, kind: KeyKind = "x25519") -> Self:
        """A new key. RSA of 4,096 bits may take a second."""
        if kind not in KEY_KINDS:
            raise InvalidArgument("key kind", f"there is no {kind!r}; {_KNOWN}")
        if kind == "x25519":
            return cls(X25519PrivateKey.generate())
        return cls(generate_private_key(_RSA_EXPONENT, int(kind.removeprefix("rsa-"))))

    @classmethod
    def from_pem(cls, pem: str | bytes, *, passphrase: str | None = None) -> Self:
        """From PKCS #8, or what older tools write for RSA. Raises `InvalidArgument`, which repeats nothing of it."""
        data = _checked_pem(pem, "private key")
        try:
            return cls(serialization.load_pem_private_key(data, passphrase.encode() if passphrase else None))
        except TypeError:
            problem = "is not under a passphrase; leave it out" if passphrase else "needs its passphrase"
            raise InvalidArgument("private key", problem) from None
        except UNREADABLE:
            hint = ", or the passphrase is not the right one" if passphrase else ""
            raise InvalidArgument("private key", f"is not a private key in PEM{hint}") from None

    def pem(self, *, passphrase: str | None = None) -> str:
        """PKCS #8, under the passphrase if there is one: a secret, for a file that its owner alone may read."""
        protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase:
            protection = serialization.BestAvailableEncryption(passphrase.encode())
        return self.material.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
        ).decode()

    def __repr__(self) -> str:
        return f"<PrivateKey of {self.public.algorithm} {self.public.fingerprint}>"

    def __reduce__(self) -> str:
        raise TypeError("a private key is not pickled; save its PEM where only its owner reads it")


def same_fingerprint(one: str, other: str) -> bool:
    """Whether two texts are the same fingerprint; the base64 may end in `=`, as some tools write it."""
    return hmac.compare_digest(one.rstrip("=").encode(), other.rstrip("=").encode())


def _checked_pem(pem: str | bytes, what: str) -> bytes:
    data = pem.encode(errors="replace") if isinstance(pem, str) else pem
    if len(data) > PEM_BYTES_MAX:
        raise InvalidArgument(what, f"has {len(data):,} bytes, a key has at most {PEM_BYTES_MAX:,}")
    return data


def _known_public(material: object) -> tuple[X25519PublicKey | RSAPublicKey, KeyKind]:
    if isinstance(material, X25519PublicKey):
        _check_point(material)
        return material, "x25519"
    if isinstance(material, RSAPublicKey):
        for kind in KEY_KINDS:
            if kind == f"rsa-{material.key_size}":
                return material, kind
        raise InvalidArgument("public key", f"is RSA of {material.key_size:,} bits; {_KNOWN}")
    raise InvalidArgument("public key", f"is of another kind; {_KNOWN}")


def _check_point(material: X25519PublicKey) -> None:
    """With a point of low order everybody has the same secret: whoever registers one would make secrets public."""
    try:
        X25519PrivateKey.generate().exchange(material)
    except ValueError:
        raise InvalidArgument("public key", "is a point of low order, which keeps nothing secret") from None
