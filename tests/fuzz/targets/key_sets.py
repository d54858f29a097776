"""The public keys of someone else who issues tokens (JWKS), as their server sends them."""

from __future__ import annotations

import json

from jwt.algorithms import ECAlgorithm

from sealane.security.credentials.key_sets import _public_keys
from tests.fuzz.known_identities import EXTERNAL_KEY
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

_EC = {**ECAlgorithm.to_jwk(EXTERNAL_KEY.public_key(), as_dict=True), "kid": "e", "use": "sig"}
_RSA = {
    "kty": "RSA",
    "kid": "r",
    "e": "AQAB",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjB"
    "ZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8"
    "KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_"
    "xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
}
SEEDS = (
    json.dumps({"keys": [_EC]}).encode(),
    json.dumps({"keys": [_RSA, {"kty": "oct", "k": "AAAA", "kid": "s"}, _EC]}).encode(),
)


def check(data: bytes) -> bool:
    """Whoever fetches a set logs a `ValueError`, and goes on with the keys that were there before."""
    try:
        keys = _public_keys(data)
    except ValueError:
        return False
    assert all(key.algorithms in (("RS256",), ("ES256",)) for key in keys.values())
    return bool(keys)


TARGET = Target("key_sets", SEEDS, check, spoil_json())
