"""Encrypting a message for one receiver, and decrypting it, as CipherMQ's clients do.

Each message has a session key of its own, under which AES-GCM encrypts the body; RSA-OAEP encrypts the session key for
the receiver. The sizes and hashes are those of PyCryptodome's `PKCS1_OAEP.new(key)` and `AES.new(key, AES.MODE_GCM)`.
A message's id is no part of what AES-GCM protects.
"""

from __future__ import annotations

import base64
import os
from typing import Literal, get_args

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.cipher.errors import CannotDecrypt
from sealane.errors import InvalidMessage
from sealane.wire.cipher.message import EncryptedMessage

OaepHash = Literal["sha1", "sha256"]
OAEP_HASHES: tuple[OaepHash, ...] = get_args(OaepHash)

BODY_BYTES_MAX = 8 << 20
"""Of one message, before it is encrypted: as base64 it fits into the longest line that a receiver reads. A node may
take less: its own limit is 1 MiB, unless it is told otherwise."""
SESSION_KEY_BYTES = 32
"""Written; receivers take the others of AES as well."""
SESSION_KEY_BYTES_READ = (16, 24, 32)
"""CipherMQ's own sender writes 16."""
NONCE_BYTES = 16
"""Written: what PyCryptodome takes if nobody says otherwise."""
NONCE_BYTES_MIN = 8
"""Read: the least that AES-GCM is used with."""
NONCE_BYTES_MAX = 64
TAG_BYTES = 16

NOT_FOR_THIS_KEY = "its session key was not encrypted for this private key, or was changed"
CHANGED = "its ciphertext, nonce or tag was changed on the way"

_PADDING: dict[OaepHash, OAEP] = {
    # In OAEP, SHA-1 has no weakness that anyone knows of, and every receiver of CipherMQ reads it.
    "sha1": OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), label=None),  # noqa: S303
    "sha256": OAEP(MGF1(hashes.SHA256()), hashes.SHA256(), label=None),
}


def encrypt(body: bytes, message_id: str, receiver: RSAPublicKey, *, oaep: OaepHash = "sha1") -> EncryptedMessage:
    """A message that only the holder of the private key reads. Raises `InvalidMessage` for a body that is too
    long, and for an id that is none.
    """
    if len(body) > BODY_BYTES_MAX:
        raise InvalidMessage("body", f"has more than {BODY_BYTES_MAX:,} bytes; send it in parts")
    session_key, nonce = os.urandom(SESSION_KEY_BYTES), os.urandom(NONCE_BYTES)
    sealed = AESGCM(session_key).encrypt(nonce, body, None)
    return EncryptedMessage(
        message_id=message_id,
        enc_session_key=_text(receiver.encrypt(session_key, _PADDING[oaep])),
        nonce=_text(nonce),
        tag=_text(sealed[-TAG_BYTES:]),
        ciphertext=_text(sealed[:-TAG_BYTES]),
    )


def decrypt(message: EncryptedMessage, key: RSAPrivateKey) -> bytes:
    """The body, whichever of the two hashes its sender used. Raises `CannotDecrypt`."""
    try:
        wrapped, nonce, tag, ciphertext = (message.bytes_of(name) for name in EncryptedMessage.BINARY)
    except InvalidMessage as error:
        raise CannotDecrypt(message.message_id, f"{error.field} {error.problem}") from None
    if not NONCE_BYTES_MIN <= len(nonce) <= NONCE_BYTES_MAX:
        problem = f"its nonce has {len(nonce):,} bytes, it has {NONCE_BYTES_MIN} to {NONCE_BYTES_MAX}"
        raise CannotDecrypt(message.message_id, problem)
    if len(tag) != TAG_BYTES:
        # Shorter ones would be taken by the algorithm, and are easier to guess.
        raise CannotDecrypt(message.message_id, f"its tag has {len(tag):,} bytes, it has {TAG_BYTES}")
    session_key = _unwrapped(wrapped, key)
    if session_key is None:
        raise CannotDecrypt(message.message_id, NOT_FOR_THIS_KEY)
    try:
        return AESGCM(session_key).decrypt(nonce, ciphertext + tag, None)
    except InvalidTag:
        raise CannotDecrypt(message.message_id, CHANGED) from None


def _unwrapped(wrapped: bytes, key: RSAPrivateKey) -> bytes | None:
    for oaep in OAEP_HASHES:
        try:
            session_key = key.decrypt(wrapped, _PADDING[oaep])
        except ValueError:
            continue
        if len(session_key) in SESSION_KEY_BYTES_READ:
            return session_key
    return None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
