"""What a session key is good for: one key seals the messages of one batch, another one binds its envelope."""

from __future__ import annotations

import hmac
from typing import NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from sealane.security.envelopes.envelope import TAG_BYTES

NONCE_BYTES = 12
GCM_TAG_BYTES = 16
MESSAGE_BYTES_ADDED = NONCE_BYTES + GCM_TAG_BYTES
"""By which a sealed payload is longer."""

_LABEL = b"sealane session v1"
_KEY_BYTES = 32


class SessionKeys(NamedTuple):
    """Derived, so that neither says anything of the other, or of the session key as a foreign sender would use it."""

    message: bytes
    """Seals payloads under AES-256-GCM, each with its message's id as associated data, and nothing else."""
    envelope: bytes

    def tag(self, body: bytes) -> bytes:
        """What binds an envelope. Of a hash and not of the cipher: two keys with one tag cannot be found."""
        return hmac.digest(self.envelope, body, "sha256")[:TAG_BYTES]

    def __repr__(self) -> str:
        return "<SessionKeys>"


def session_keys(session_key: bytes) -> SessionKeys:
    derived = HKDFExpand(hashes.SHA256(), 2 * _KEY_BYTES, _LABEL).derive(session_key)
    return SessionKeys(derived[:_KEY_BYTES], derived[_KEY_BYTES:])
