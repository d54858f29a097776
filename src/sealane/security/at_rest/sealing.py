"""Sealing: one AES-256-GCM pass over a whole serialised batch or journal entry.

Layout of sealed bytes: u8 version, u32 key id (little-endian), 16 random bytes of salt, ciphertext, 16-byte tag.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import CorruptData, FormatTooNew
from sealane.security.at_rest.keys import Keyring

SEAL_VERSION = 1
SALT_BYTES = 16
TAG_BYTES = 16
_HEAD = struct.Struct("<BI")
HEAD_BYTES = _HEAD.size
KEY_ID_POSITION = 1
"""Where in sealed bytes the id of their key begins: four bytes, little-endian."""
PREFIX_BYTES = _HEAD.size + SALT_BYTES
"""Where in sealed bytes the ciphertext begins."""
OVERHEAD_BYTES = PREFIX_BYTES + TAG_BYTES
"""How much longer sealed bytes are than what they hold."""

_INFO = b"sealane batch v1"
# A key is derived for every single seal from a fresh 128-bit salt and encrypts exactly one message, so the pair of
# key and nonce never repeats and a constant nonce is sound.
_NONCE = bytes(12)


class Sealer:
    """Seals and opens bytes under the keys of a `Keyring`."""

    __slots__ = ("_entropy", "keyring")

    def __init__(self, keyring: Keyring, entropy: Callable[[int], bytes]) -> None:
        self.keyring = keyring
        self._entropy = entropy

    def ensure(self, domain: str) -> None:
        """Make the domain's key if there is none; durable on return. Call it before the first `seal` of a domain."""
        self.keyring.ensure(domain)

    def seal(self, domain: str, plain: bytes | memoryview, associated: bytes) -> memoryview:
        """Sealed bytes that `open` gives back only for the same domain and the same associated bytes."""
        sealed = memoryview(bytearray(len(plain) + OVERHEAD_BYTES))
        self.seal_into(sealed, domain, plain, associated)
        return sealed.toreadonly()

    def seal_into(self, sealed: memoryview, domain: str, plain: bytes | memoryview, associated: bytes) -> None:
        """The same into memory of the caller's, as long as `plain` and `OVERHEAD_BYTES`."""
        key_id, domain_key = self.keyring.sealing_key(domain)
        salt = self._entropy(SALT_BYTES)
        # Encrypting straight into the final buffer behind its prefix saves a copy of the batch.
        _HEAD.pack_into(sealed, 0, SEAL_VERSION, key_id)
        sealed[_HEAD.size : PREFIX_BYTES] = salt
        AESGCM(_derive(domain_key, salt)).encrypt_into(_NONCE, plain, associated, sealed[PREFIX_BYTES:])

    def open(self, domain: str, sealed: bytes | memoryview, associated: bytes) -> bytes:
        """What was sealed, or `CorruptData` if a single bit differs, or `KeyUnavailable`."""
        opening = self._opening(domain, sealed)
        try:
            return opening.decrypt(_NONCE, memoryview(sealed)[PREFIX_BYTES:], associated)
        except InvalidTag:
            raise _tampered(domain) from None

    def open_in_place(self, domain: str, sealed: memoryview, associated: bytes) -> memoryview:
        """The same as `open`, within the memory of the sealed bytes, which are gone then, whatever comes of it.

        Memory that is new to the process costs more than deciphering into it.
        """
        opening = self._opening(domain, sealed)
        plain = sealed[PREFIX_BYTES:-TAG_BYTES]
        try:
            opening.decrypt_into(_NONCE, sealed[PREFIX_BYTES:], associated, plain)
        except InvalidTag:
            raise _tampered(domain) from None
        return plain.toreadonly()

    def _opening(self, domain: str, sealed: bytes | memoryview) -> AESGCM:
        """What opens these bytes, if their head is right."""
        if len(sealed) < OVERHEAD_BYTES:
            raise CorruptData(
                f"sealed bytes of domain {domain!r} are too short: {len(sealed)} of {OVERHEAD_BYTES} at least"
            )
        version, key_id = _HEAD.unpack_from(sealed)
        if version > SEAL_VERSION:
            raise FormatTooNew(f"a sealed batch of domain {domain!r}", version, SEAL_VERSION)
        if version != SEAL_VERSION:
            raise CorruptData(f"sealed bytes of domain {domain!r} carry an unknown version {version}")
        view = memoryview(sealed)
        return AESGCM(_derive(self.keyring.opening_key(domain, key_id), bytes(view[_HEAD.size : PREFIX_BYTES])))


def _tampered(domain: str) -> CorruptData:
    return CorruptData(f"sealed bytes of domain {domain!r} fail their authentication tag")


def key_id_of(data: bytes | memoryview) -> int | None:
    """By which key these bytes are sealed, if they are sealed bytes at all."""
    if len(data) < OVERHEAD_BYTES or data[0] != SEAL_VERSION:
        return None
    return int(_HEAD.unpack_from(data)[1])


def _derive(domain_key: bytes, salt: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) for one block of output, which is two HMACs: half the time of building an HKDF object."""
    return _hmac(_hmac(salt, domain_key), _INFO + b"\x01")


def _hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 (RFC 2104) under a key of at most one block.

    `hmac.new` goes through three functions of Python's for it and takes twice as long. `hmac.digest` lets go of the
    interpreter, which a committing thread beside a busy loop gets back only half a millisecond later.
    """
    block = key.ljust(_BLOCK_BYTES, b"\0")
    return sha256(block.translate(_OUTER) + sha256(block.translate(_INNER) + message).digest()).digest()


_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
