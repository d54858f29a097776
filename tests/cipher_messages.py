"""Messages as a sender of CipherMQ makes them, with random bytes for what nobody here can read."""

from __future__ import annotations

import base64
import json
import os
import uuid


def encrypted(message_id: str | None = None, *, ciphertext_bytes: int = 64) -> dict[str, str]:
    """One message."""
    return {
        "message_id": message_id if message_id is not None else str(uuid.uuid4()),
        "enc_session_key": _base64(256),
        "nonce": _base64(16),
        "tag": _base64(16),
        "ciphertext": _base64(ciphertext_bytes),
    }


def written(message: object) -> str:
    """As a Python program writes it to a line."""
    return json.dumps(message)


def _base64(count: int) -> str:
    return base64.b64encode(os.urandom(count)).decode()
