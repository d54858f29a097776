"""Somebody of each kind who may come in, known to a node that is in memory and whose clock stands still."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from sealane.engine.memory import MemoryEngine
from sealane.node.identity import Identity
from sealane.node.surroundings import Surroundings
from sealane.security.ca.issued import Issued
from sealane.security.introductions import Introduction
from sealane.security.settings import SecuritySettings, TokenSettings

NOW_US = 1_760_000_000_000_000
ISSUER = "https://login.example.com"
EXTERNAL_KEY = ec.derive_private_key(0x5EA1A4E, ec.SECP256R1())
"""The same in every run, so that tokens that were kept are still tokens."""


@dataclass(frozen=True)
class KnownIdentities:
    identity: Identity
    api_key: str
    token_key: tuple[str, bytes]
    """Id and secret of what signs the node's own tokens."""
    own_token: str
    external_token: str
    certificate: Issued


def external_claims() -> dict[str, Any]:
    now = NOW_US / 1_000_000
    return {"iss": ISSUER, "aud": ["other", "sealane"], "sub": "anna", "exp": now + 600, "roles": ["a b"], "iat": now}


@cache
def known() -> KnownIdentities:
    return asyncio.run(_made())


async def _made() -> KnownIdentities:
    with _published_keys() as keys:
        settings = SecuritySettings(tokens=TokenSettings(issuer=ISSUER, keys=str(keys)))
        identity = Identity(MemoryEngine(lambda: NOW_US), Surroundings(lambda: NOW_US, _same_entropy()), settings)
        await identity.load()
        await identity.authorities.init()
        _, api_key = await identity.api_keys.create("program")
        await identity.users.create("anna", "a long enough passphrase")
        own_token, _ = await identity.tokens.issue("anna")
        certificate = await identity.authorities.issue("machine")
        external = jwt.encode(external_claims(), EXTERNAL_KEY, algorithm="ES256", headers={"kid": "e"})
        # The keys are looked at once: the clock stands still, so they are never looked at again.
        shown = Introduction({"token": external}, None, "127.0.0.1", "native")
        await identity.authentication.authenticate(shown)
    name, key = next(iter(identity.tokens._keys))
    return KnownIdentities(identity, api_key, (name, key.secret), own_token, external, certificate)


@contextmanager
def _published_keys() -> Iterator[Path]:
    """A file with what the other issuer's tokens are checked by."""
    public = {**ECAlgorithm.to_jwk(EXTERNAL_KEY.public_key(), as_dict=True), "kid": "e"}
    with tempfile.TemporaryDirectory() as directory:
        keys = Path(directory, "keys.json")
        keys.write_text(json.dumps({"keys": [public]}))
        yield keys


def _same_entropy() -> Any:
    """Random bytes, as far as anybody needs them here, and the same in every run."""
    drawn = count()

    def entropy(size: int) -> bytes:
        return hashlib.shake_256(b"fuzz %d" % next(drawn)).digest(size)

    return entropy
