"""Credentials as the first word of a connection shows them (MessagePack): API keys, proofs of one, tokens, users."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.errors import Unauthenticated, Unavailable
from sealane.security.credentials.key_text import read_api_key
from sealane.security.introductions import Introduction
from sealane.wire.signing import NONCE_BYTES, login_proof
from tests.fuzz.coroutines import at_once
from tests.fuzz.known_identities import NOW_US, known
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_msgpack

_KNOWN = known()
_KEY = read_api_key(_KNOWN.api_key)


def _proof(nonce: bytes) -> dict[str, Any]:
    proof = login_proof(_KEY.secret, _KEY.id, nonce, NOW_US)
    return {"key": {"id": _KEY.id, "time_us": NOW_US, "nonce": nonce, "proof": proof}}


SEEDS = tuple(
    msgspec.msgpack.encode(shown)
    for shown in ({"key": _KNOWN.api_key}, {"token": _KNOWN.own_token}, _proof(bytes(NONCE_BYTES)))
)


def check(data: bytes) -> bool:
    try:
        credentials = msgspec.msgpack.decode(data, type=dict[str, Any] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, TypeError, OverflowError, RecursionError):
        return False  # As the protocol's own decoder would.
    if credentials and isinstance(credentials.get("user"), str) and isinstance(credentials.get("password"), str):
        return False  # A password is checked slowly, on purpose.
    # A proof is good for one connection, and here each is to be looked at.
    _KNOWN.identity.authentication._by_credentials[0]._logins.clear()  # type: ignore[attr-defined]
    try:
        principal = at_once(
            _KNOWN.identity.authentication.authenticate(Introduction(credentials, None, "127.0.0.1", "native"))
        )
    except (Unauthenticated, Unavailable):
        return False
    assert principal.name in ("program", "anna")
    return True


TARGET = Target("credentials", SEEDS, check, spoil_msgpack())
