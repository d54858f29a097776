"""Tokens (JWT): of the node's own users, and of another issuer."""

from __future__ import annotations

import base64
import hmac
import json
import random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.hashes import SHA256
from jwt.utils import der_to_raw_signature

from sealane.errors import Unauthenticated
from sealane.security.introductions import Introduction
from tests.fuzz.coroutines import at_once
from tests.fuzz.known_identities import EXTERNAL_KEY, known
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.trees import VALUES, changed

_KNOWN = known()
SEEDS = (_KNOWN.own_token.encode(), _KNOWN.external_token.encode())
_CLAIM_VALUES = (*VALUES, "sealane", "anna", "none", ["a"] * 101, [1], float("inf"), float("nan"), 1.76e9)


def check(data: bytes) -> bool:
    shown = Introduction({"token": data.decode("utf-8", "replace")}, None, "127.0.0.1", "native")
    try:
        principal = at_once(_KNOWN.identity.authentication.authenticate(shown))
    except Unauthenticated:
        return False
    assert principal.kind == "token"
    assert principal.name in ("anna", "external:anna") or principal.name.startswith("external:")
    assert principal.expires_us is not None
    assert principal.expires_us > 0
    return True


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Mostly it says something else, and is signed for that: by the right key, or not at all."""
    parts = data.split(b".")
    if len(parts) != 3 or choose.random() < 0.3:
        return mutate(data, choose)
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + b"==")) for part in parts[:2])
    except ValueError:
        return mutate(data, choose)
    if choose.random() < 0.4:
        header = changed(header, choose, _CLAIM_VALUES)
    said = b".".join([_part(header), _part(changed(claims, choose, _CLAIM_VALUES))])
    return said + b"." + base64.urlsafe_b64encode(_signature(said, choose)).rstrip(b"=")


def _signature(said: bytes, choose: random.Random) -> bytes:
    """By either key, whatever the token says of itself."""
    if choose.random() < 0.05:
        return b""
    if choose.random() < 0.5:
        return hmac.digest(_KNOWN.token_key[1], said, "sha256")
    signature = EXTERNAL_KEY.sign(said, ECDSA(SHA256(), deterministic_signing=True))
    return der_to_raw_signature(signature, EXTERNAL_KEY.curve)


def _part(value: Any) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")


TARGET = Target("tokens", SEEDS, check, spoil)
