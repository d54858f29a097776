"""Whose publishes are signed on a connection, and what they are checked with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sealane.node.session import Session
from sealane.wire.signing import NONCE_BYTES, Verifier, connection_key


class Signatures(NamedTuple):
    """`nonce` is for `Welcome`: empty where nothing needs to be signed."""

    nonce: bytes = b""
    verifier: Verifier | None = None


def signatures_of(session: Session, credentials: Mapping[str, Any] | None) -> Signatures:
    """What holds for a connection of this session, which came in by these. Raises `Unauthenticated` if the key by
    which it would sign is over in this moment.
    """
    secret = session.signing_secret()
    if secret is None:
        return Signatures()
    shown = (credentials or {}).get("key")
    client_nonce = shown["nonce"] if isinstance(shown, Mapping) else b""  # A key that is shown whole has none.
    nonce = session.surroundings.entropy(NONCE_BYTES)
    return Signatures(nonce, Verifier(connection_key(secret, client_nonce, nonce)))
