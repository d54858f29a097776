"""RSA key pairs: whoever holds the private key reads what was encrypted for the public one."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key

from sealane.errors import AlreadyExists, InvalidArgument
from sealane.whole_files import PRIVATE, PUBLIC, create_file

KEY_BITS = (2048, 3072, 4096)
"""What a node takes; CipherMQ's own clients have 2,048."""
KEY_BITS_DEFAULT = 2048
KEY_FILE_BYTES_MAX = 16 << 10
"""Four times what the longest key takes: whatever is longer is another file."""
PRIVATE_SUFFIX, PUBLIC_SUFFIX = ".key", ".pub"

_EXPONENT = 65_537
_KNOWN = "a key here is RSA of " + ", ".join(f"{bits:,}" for bits in KEY_BITS) + " bits"


class KeyFiles(NamedTuple):
    """Where a pair is."""

    private: Path
    public: Path


def new_key(bits: int = KEY_BITS_DEFAULT) -> RSAPrivateKey:
    """A new pair. 4,096 bits may take a second."""
    if bits not in KEY_BITS:
        raise InvalidArgument("bits", f"{bits:,} is not possible; {_KNOWN}")
    return generate_private_key(_EXPONENT, bits)


def write_pair(stem: Path, key: RSAPrivateKey, passphrase: str | None = None) -> KeyFiles:
    """`STEM.key`, for its owner alone, and `STEM.pub`, both new.

    Raises `AlreadyExists`: without its private key, what was encrypted for it is lost.
    """
    files = KeyFiles(stem.with_name(stem.name + PRIVATE_SUFFIX), stem.with_name(stem.name + PUBLIC_SUFFIX))
    stem.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in files:
        if os.path.lexists(path):
            raise AlreadyExists("file", str(path), "it is not written over; choose another name or directory")
    create_file(files.private, _private_pem(key, passphrase), PRIVATE)
    try:
        create_file(files.public, public_pem(key.public_key()), PUBLIC)
    except BaseException:
        files.private.unlink()  # Half a pair would only be in the way of the next attempt.
        raise
    return files


def read_public_key(path: Path) -> RSAPublicKey:
    """Raises `InvalidArgument` for anything else than the public half of a pair."""
    pem = _content(path)
    if b"PRIVATE KEY" in pem:
        raise InvalidArgument(str(path), "is a private key: that one stays with the receiver; give its public half")
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(str(path), "is not a public key in PEM (-----BEGIN PUBLIC KEY-----)") from None
    if not isinstance(key, RSAPublicKey):
        raise InvalidArgument(str(path), f"is a key of another kind; {_KNOWN}")
    _check_size(path, key.key_size)
    return key


def read_private_key(path: Path, passphrase: str | None = None) -> RSAPrivateKey:
    """From PKCS #8, or what older tools write. Raises `InvalidArgument`, which repeats nothing of it."""
    pem = _content(path)
    if b"PUBLIC KEY" in pem:
        raise InvalidArgument(str(path), "is a public key, which decrypts nothing; give the private one")
    try:
        key = serialization.load_pem_private_key(pem, passphrase.encode() if passphrase else None)
    except TypeError:
        problem = "is not under a passphrase; leave it out" if passphrase else "needs its passphrase"
        raise InvalidArgument(str(path), problem) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = ", or the passphrase is not the right one" if passphrase else ""
        raise InvalidArgument(str(path), f"is not a private key in PEM{hint}") from None
    if not isinstance(key, RSAPrivateKey):
        raise InvalidArgument(str(path), f"is a key of another kind; {_KNOWN}")
    _check_size(path, key.key_size)
    return key


def needs_passphrase(path: Path) -> bool:
    """Whether the private key is under one, as PKCS #8 or as older tools write it."""
    return b"ENCRYPTED" in _content(path)


def public_pem(key: RSAPublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: RSAPublicKey) -> str:
    """`SHA256:` and the hash of the public key in base64: two people compare it by another way than this broker."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def _private_pem(key: RSAPrivateKey, passphrase: str | None) -> bytes:
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        protection = serialization.BestAvailableEncryption(passphrase.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


def _check_size(path: Path, bits: int) -> None:
    if bits not in KEY_BITS:
        raise InvalidArgument(str(path), f"is RSA of {bits:,} bits; {_KNOWN}")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(KEY_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    if len(found) > KEY_FILE_BYTES_MAX:
        raise InvalidArgument(str(path), f"has more than {KEY_FILE_BYTES_MAX:,} bytes, so it is no key")
    return found
