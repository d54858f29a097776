"""What CipherMQ's clients seal: a session key of AES-128 under RSA-OAEP, the body under AES-GCM, bound to nothing.

Their messages come as four values; here they become a payload and an envelope like any other, so that who holds the
private key opens them with the rest. They are read and never written: Sealane's own way binds a message to its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import InvalidMessage
from sealane.security.envelopes.envelope import (
    ANY_KEY,
    FOREIGN,
    RSA_2048,
    RSA_2048_SHA1,
    RSA_3072,
    RSA_3072_SHA1,
    RSA_4096,
    RSA_4096_SHA1,
    WRAPPED_BYTES,
    Wrapped,
    write_body,
)
from sealane.security.envelopes.session import GCM_TAG_BYTES

FOREIGN_NONCE_BYTES_MAX = 64
"""CipherMQ's clients take 16; AES-GCM would take any length from 8 on."""
FOREIGN_NONCE_BYTES_MIN = 8


def foreign_envelope(wrapped_session_key: bytes) -> bytes:
    """The envelope of a session key under RSA-OAEP, be it with SHA-1 or SHA-256: its sender does not tell which."""
    kinds = [
        kind
        for kind in (RSA_2048_SHA1, RSA_2048, RSA_3072_SHA1, RSA_3072, RSA_4096_SHA1, RSA_4096)
        if WRAPPED_BYTES[kind] == len(wrapped_session_key)
    ]
    if not kinds:
        raise InvalidMessage("session key", f"has {len(wrapped_session_key)} bytes, which no RSA key here makes of one")
    return write_body(FOREIGN, [Wrapped(kind, ANY_KEY, wrapped_session_key) for kind in kinds])


def foreign_payload(nonce: bytes, ciphertext: bytes, tag: bytes) -> bytes:
    """Nonce, body and tag as one payload."""
    if not FOREIGN_NONCE_BYTES_MIN <= len(nonce) <= FOREIGN_NONCE_BYTES_MAX:
        problem = f"has {len(nonce)} bytes, it has {FOREIGN_NONCE_BYTES_MIN} to {FOREIGN_NONCE_BYTES_MAX}"
        raise InvalidMessage("nonce", problem)
    if len(tag) != GCM_TAG_BYTES:
        raise InvalidMessage("tag", f"has {len(tag)} bytes, it has {GCM_TAG_BYTES}")
    return bytes([len(nonce)]) + nonce + ciphertext + tag


def open_foreign(session_key: bytes) -> Callable[[Sequence[bytes], pa.Array], list[bytes]]:
    """What opens the payloads under this session key; the messages' ids are no part of it."""
    decrypt = AESGCM(session_key).decrypt

    def open_all(_ids: Sequence[bytes], payloads: pa.Array) -> list[bytes]:
        found: list[bytes] = payloads.to_pylist()
        starts = [1 + (sealed[0] if sealed else 0) for sealed in found]
        return [decrypt(sealed[1:start], sealed[start:], None) for sealed, start in zip(found, starts, strict=True)]

    return open_all
