"""Signatures as the Standard Webhooks specification has them, version 1: HMAC-SHA256 of `id.timestamp.body`."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"  # noqa: S105 - in front of every secret
SECRET_BYTES = 32
"""The specification asks for 24 to 64."""


def written_secret(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def signature(secrets: Sequence[bytes], identity: str, timestamp: int, body: bytes) -> str:
    """One for each secret, with spaces between them: a receiver that knows any of them is content."""
    signed = f"{identity}.{timestamp}.".encode() + body
    digests = (hmac.digest(secret, signed, "sha256") for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def request_id(message_ids: Sequence[str]) -> str:
    """The same for the same messages, however often they are sent: of one message its id, of several made of theirs."""
    if len(message_ids) == 1:
        return message_ids[0]
    return hashlib.sha256(" ".join(message_ids).encode()).hexdigest()[:32]
